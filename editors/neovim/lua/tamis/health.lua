--- `:checkhealth tamis`.
local M = {}

function M.check()
  vim.health.start('tamis')
  if vim.fn.has('nvim-0.11') == 1 then
    vim.health.ok('Neovim ' .. tostring(vim.version()))
  else
    vim.health.error('Neovim is older than 0.11', { 'The client uses vim.lsp.config and vim.lsp.enable; update Neovim.' })
    return
  end
  local config = vim.lsp.config.tamis
  local command = config and config.cmd or { 'tamis', 'lsp' }
  local program = type(command) == 'table' and command[1] or nil
  if program and vim.fn.executable(program) == 1 then
    local run = vim.system({ program, '--version' }, { text = true, timeout = 5000 }):wait()
    local version = vim.trim((run.stdout or '') ~= '' and run.stdout or '(no version)')
    vim.health.ok(('server: %s %s'):format(vim.fn.exepath(program), version))
  elseif program then
    vim.health.error(("the server '%s' was not found"):format(program), {
      'Install it from a clone of Tamis: `pip install .` there.',
      "Or name the clone's own: vim.lsp.config('tamis', { cmd = { '/path/to/clone/.venv/bin/tamis', 'lsp' } })",
    })
  end
  if vim.lsp.is_enabled and not vim.lsp.is_enabled('tamis') then
    vim.health.warn('the client is not enabled', { "Put vim.lsp.enable('tamis') into your init.lua." })
  end
  local clients = vim.lsp.get_clients({ name = 'tamis' })
  if #clients == 0 then
    vim.health.info('no buffer is attached')
  end
  for _, client in ipairs(clients) do
    local buffers = vim.tbl_count(client.attached_buffers)
    vim.health.ok(
      ('client %d: root %s, %d buffer(s), positions in %s'):format(
        client.id,
        client.root_dir or '(none)',
        buffers,
        client.offset_encoding
      )
    )
  end
  local log = vim.lsp.log and vim.lsp.log.get_filename and vim.lsp.log.get_filename() or vim.lsp.get_log_path()
  vim.health.info('log: ' .. log)
end

return M
