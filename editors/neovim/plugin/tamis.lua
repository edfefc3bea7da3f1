if vim.g.loaded_tamis then
  return
end
vim.g.loaded_tamis = true

if vim.fn.has('nvim-0.11') == 0 then
  vim.notify_once('tamis needs Neovim 0.11 or later; see :help tamis', vim.log.levels.WARN)
  return
end

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
