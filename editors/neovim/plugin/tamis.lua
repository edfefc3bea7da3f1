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
      ("tamis: the program '%s' was not found. Run `pip install .` in a clone of Tamis, or name the clone's own: "):format(program)
        .. "vim.lsp.config('tamis', { cmd = { '/path/to/clone/.venv/bin/tamis', 'lsp' } })",
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

local actions = {
  restart = function()
    local clients = vim.lsp.get_clients({ name = 'tamis' })
    vim.lsp.enable('tamis', false)
    vim.lsp.stop_client(clients)
    vim.defer_fn(function()
      vim.lsp.enable('tamis')
    end, 100)
  end,
  log = function()
    vim.cmd.tabedit(vim.lsp.log.get_filename and vim.lsp.log.get_filename() or vim.lsp.get_log_path())
  end,
  info = function()
    vim.cmd.checkhealth('tamis')
  end,
}

vim.api.nvim_create_user_command('Tamis', function(args)
  local action = actions[args.fargs[1]]
  if action == nil then
    vim.notify("Tamis: no command '" .. tostring(args.fargs[1]) .. "'; see :help :Tamis", vim.log.levels.ERROR)
    return
  end
  action()
end, {
  nargs = 1,
  desc = 'Tamis: restart the server, open its log, show what is in force',
  complete = function(lead)
    return vim.tbl_filter(function(name)
      return vim.startswith(name, lead)
    end, vim.tbl_keys(actions))
  end,
})
