--- `:checkhealth tamis`.
local M = {}

--- The versions that this plug-in was made for: below 1 the minor version has to be the same.
local SERVER = '^0%.1%.'
local REVISION = 1

--- A path as it is written below the home folder.
local function short(path)
  return vim.fn.fnamemodify(path, ':~')
end

--- What the server of a client says of itself: its version, the sandbox, the tools.
---@param client vim.lsp.Client
local function of_server(client)
  local info = client.server_info or {}
  if not tostring(info.version):match(SERVER) then
    vim.health.warn(
      ('server %s; this plug-in was made for 0.1'):format(info.version),
      { 'Install the program and the plug-in from the same clone.' }
    )
  end
  local reply = client:request_sync('server/health', vim.empty_dict(), 10000)
  local health = reply and reply.result
  if not health then
    vim.health.warn('the server did not answer', { 'Look into its log: :Tamis log' })
    return
  end
  if health.rpc ~= REVISION then
    vim.health.error(
      ('the server speaks revision %s of the tool methods, the plug-in %d'):format(health.rpc, REVISION),
      { 'Install both from the same clone.' }
    )
  else
    vim.health.ok(('tool methods: revision %d'):format(REVISION))
  end
  local sandbox = health.sandbox or {}
  if sandbox.available then
    vim.health.ok(('sandbox: %s %s'):format(sandbox.backend, sandbox.version or ''))
  else
    vim.health.error('no sandbox works here, so no script is run', { 'Run `tamis doctor`: it says what is missing.' })
  end
  vim.health.info(('tools: %d in %s'):format(health.tools or 0, short(health.root or '?')))
  local wrong = health.manifestErrors or 0
  if wrong > 0 then
    vim.health.warn(
      wrong == 1 and '1 manifest has errors' or ('%d manifests have errors'):format(wrong),
      { 'Run `tamis check`, or open them.' }
    )
  end
end

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
    vim.health.ok(('server: %s %s'):format(short(vim.fn.exepath(program)), version))
  elseif program then
    vim.health.error(("the server '%s' was not found"):format(program), {
      ':Tamis install asks how, and installs it into the data folder of Neovim.',
      'Or install it from a clone of Tamis yourself: `pip install .` there.',
      "Or name the clone's own: vim.lsp.config('tamis', { cmd = { '/path/to/clone/.venv/bin/tamis', 'lsp' } })",
    })
  end
  for _, place in ipairs(require('tamis.install').places()) do
    if place.path ~= '' and vim.fn.executable(place.path) == 1 then
      vim.health.info(('found in %s: %s'):format(place.what, short(place.path)))
    end
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
        client.root_dir and short(client.root_dir) or '(none)',
        buffers,
        client.offset_encoding
      )
    )
    of_server(client)
  end
  for _, runtime in ipairs({ 'python3', 'node', 'bun', 'uv' }) do
    local found = vim.fn.exepath(runtime)
    vim.health.info(('%s: %s'):format(runtime, found ~= '' and short(found) or 'not found; tools of its language cannot run'))
  end
  if #vim.lsp.get_clients({ name = 'jsonls' }) > 0 and #clients > 0 then
    vim.health.info('jsonls is attached too; in the buffers of both, findings, completion and hovers are those of Tamis')
  end
  local log = vim.lsp.log and vim.lsp.log.get_filename and vim.lsp.log.get_filename() or vim.lsp.get_log_path()
  vim.health.info('log: ' .. short(log))
end

return M
