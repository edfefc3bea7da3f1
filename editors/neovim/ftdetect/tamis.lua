-- Manifests keep the filetype json, so that treesitter and other JSON servers go on working; only the files that hold
-- nothing but calls have filetypes of their own.
vim.filetype.add({
  extension = { tam = 'tam', vcp = 'vcp', action = 'toolaction' },
  pattern = {
    ['.*%.tool%.json'] = 'json',
    ['.*%.tool%.jsonc'] = 'jsonc',
  },
})
