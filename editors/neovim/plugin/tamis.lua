if vim.g.loaded_tamis then
  return
end
vim.g.loaded_tamis = true

if vim.fn.has('nvim-0.11') == 0 then
  vim.notify_once('tamis needs Neovim 0.11 or later; see :help tamis', vim.log.levels.WARN)
  return
end

--- Neovim only logs that a server's program is missing; a newcomer looks for the cause in the editor.
---@param buffer integer
local function tell_when_missing(buffer)
  if not vim.api.nvim_buf_is_valid(buffer) or not vim.lsp.is_enabled or not vim.lsp.is_enabled('tamis') then
    return
  end
  local config = vim.lsp.config.tamis
  local program = config and type(config.cmd) == 'table' and config.cmd[1] or nil
  if not program or vim.fn.executable(program) == 1 or type(config.root_dir) ~= 'function' then
    return
  end
  if not vim.list_contains(config.filetypes or {}, vim.bo[buffer].filetype) then
    return
  end
  -- The client's own rule says whether it would have attached to this buffer.
  config.root_dir(buffer, function()
    vim.notify_once(
      ("tamis: the program '%s' was not found. `:Tamis install` asks how to install it. Or run `pip install .` in a clone of Tamis, or name the clone's own: "):format(
        program
      ) .. "vim.lsp.config('tamis', { cmd = { '/path/to/clone/.venv/bin/tamis', 'lsp' } })",
      vim.log.levels.WARN
    )
  end)
end

-- Scheduled: a plugin manager may enable the client only after this file was read.
vim.api.nvim_create_autocmd('FileType', {
  group = vim.api.nvim_create_augroup('tamis_missing', {}),
  callback = function(event)
    vim.schedule(function()
      tell_when_missing(event.buf)
    end)
  end,
})
vim.schedule(function()
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) then
      tell_when_missing(buffer)
    end
  end
end)

for group, link in pairs({
  TamisRunning = 'DiagnosticInfo',
  TamisSuccess = 'DiagnosticOk',
  TamisError = 'DiagnosticError',
  TamisDenied = 'DiagnosticWarn',
  TamisTimeout = 'DiagnosticWarn',
  TamisTab = 'TabLine',
  TamisTabSelected = 'PmenuSel',
}) do
  vim.api.nvim_set_hl(0, group, { link = link, default = true })
end

vim.api.nvim_create_autocmd('LspProgress', {
  group = vim.api.nvim_create_augroup('tamis_progress', {}),
  callback = function(event)
    if package.loaded['tamis.run'] then
      require('tamis.run').progress(event.data.params)
    end
  end,
})

vim.api.nvim_create_user_command('Tamis', function(args)
  require('tamis.commands').command(args)
end, {
  nargs = '+',
  range = true,
  desc = 'Tamis: run, copy, convert and test calls, show what came of them; see :help :Tamis',
  complete = function(lead, line)
    return require('tamis.commands').complete(lead, line)
  end,
})

-- The names that nvim-lspconfig's users look for, in the buffers that have the client.
vim.api.nvim_create_autocmd('LspAttach', {
  group = vim.api.nvim_create_augroup('tamis_attach', {}),
  callback = function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if client and (client.name == 'jsonls' or client.name == 'tamis') then
      require('tamis.jsonls').attached(event.buf)
    end
    if not client or client.name ~= 'tamis' then
      return
    end
    for name, verb in pairs({ LspTamisRun = 'run', LspTamisDryRun = 'dryrun', LspTamisResult = 'result' }) do
      vim.api.nvim_buf_create_user_command(event.buf, name, function(args)
        vim.cmd({ cmd = 'Tamis', args = { verb }, range = { args.line1, args.line2 } })
      end, { range = true, desc = ':Tamis ' .. verb })
    end
  end,
})

vim.api.nvim_create_autocmd('LspDetach', {
  group = vim.api.nvim_create_augroup('tamis_detach', {}),
  callback = function()
    if package.loaded['tamis.jsonls'] then
      vim.schedule(require('tamis.jsonls').left)
    end
    if package.loaded['tamis.tests'] then
      vim.defer_fn(require('tamis.tests').detached, 500)
    end
  end,
})

for name, map in pairs({
  TamisRun = { 'run', 'run the call under the cursor' },
  TamisDryRun = { 'dryrun', 'check the call and tell what it would be granted' },
  TamisRerun = { 'rerun', 'run again what ran last' },
  TamisResult = { 'result', 'show the result again' },
  TamisCancel = { 'cancel', 'cancel what runs' },
  TamisHistory = { 'history', 'choose among what was run' },
  TamisCopy = { 'copy', 'copy the call in another form' },
  TamisConvert = { 'convert', 'write the call in another protocol' },
}) do
  vim.keymap.set('n', ('<Plug>(%s)'):format(name), ('<Cmd>Tamis %s<CR>'):format(map[1]), { desc = 'Tamis: ' .. map[2] })
end
vim.keymap.set('x', '<Plug>(TamisRun)', ':Tamis run<CR>', { desc = 'Tamis: run the calls of the selection' })
