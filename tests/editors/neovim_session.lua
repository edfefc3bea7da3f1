-- Drives Neovim's own LSP client with the project's configuration and writes down what a user would see.
-- Usage: nvim --headless -u NONE -i NONE -l neovim_session.lua PLUGIN_DIR WORKSPACE OUTSIDE RESULT_FILE
local plugin, workspace, outside, result_file = unpack(_G.arg)
local seen = {}

local function write()
  vim.fn.writefile({ vim.json.encode(seen) }, result_file)
end

vim.opt.runtimepath:prepend(plugin)
vim.cmd('filetype on')
vim.cmd.runtime({ 'ftdetect/*.lua', bang = true })
vim.cmd.runtime('plugin/tamis.lua')
vim.lsp.enable('tamis')

local function client()
  return vim.lsp.get_clients({ bufnr = 0, name = 'tamis' })[1]
end

local function shown()
  local found = {}
  for _, item in ipairs(vim.diagnostic.get(0)) do
    table.insert(found, {
      code = item.code,
      severity = item.severity,
      source = item.source,
      message = item.message,
      -- Bytes, as Neovim counts columns, whatever was negotiated.
      from = { item.lnum, item.col },
      to = { item.end_lnum, item.end_col },
    })
  end
  return found
end

local function has(code)
  for _, item in ipairs(vim.diagnostic.get(0)) do
    if item.code == code then
      return true
    end
  end
  return false
end

local function wait_for(what, condition)
  local ok = vim.wait(300000, condition, 10)
  if not ok then
    seen.failed = seen.failed or {}
    table.insert(seen.failed, { waited_for = what, diagnostics = shown(), attached = client() ~= nil })
    write()
    os.exit(3)
  end
end

local function completion(line, column)
  vim.api.nvim_win_set_cursor(0, { line + 1, column })
  local found = client()
  local params = vim.lsp.util.make_position_params(0, found.offset_encoding)
  local answers = vim.lsp.buf_request_sync(0, 'textDocument/completion', params, 300000)
  local answer = answers and answers[found.id] or {}
  local labels = {}
  for _, item in ipairs(answer.result and answer.result.items or {}) do
    table.insert(labels, item.label)
  end
  return labels
end

local function replace(line, from, to, text)
  vim.api.nvim_buf_set_text(0, line, from, line, to, { text })
end

local function find(pattern)
  for number, line in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do
    local from, to = line:find(pattern, 1, true)
    if from then
      return number - 1, from - 1, to
    end
  end
end

-- A broken manifest from disk.
vim.cmd.edit(workspace .. '/tools/broken.tool.json')
wait_for('a client on the manifest', function()
  return client() ~= nil and client().initialized
end)
seen.filetype = vim.bo.filetype
seen.encoding = client().offset_encoding
seen.root = client().root_dir
wait_for('diagnostics of the manifest', function()
  return has('MF503') and has('MF540')
end)
seen.manifest = shown()

-- The edits a user would make: the errors go, and come back.
local line, from, to = find('pyton')
replace(line, from, to, 'python')
wait_for('the wrong value to be right', function()
  return not has('MF503')
end)
line, from, to = find('missing.py')
replace(line, from, to, 'echo.py')
wait_for('the missing script to be found', function()
  return not has('MF540')
end)
seen.mended = shown()
line, from, to = find('echo.py')
replace(line, from, to, 'gone.py')
wait_for('the missing script to be noticed again', function()
  return has('MF540')
end)
line, from, to = find('gone.py')
seen.scripts = completion(line, from + 2)

-- A text with calls, characters of one to four bytes before them.
vim.cmd.edit(workspace .. '/transcript.md')
wait_for('diagnostics of the transcript', function()
  return has('VA403')
end)
seen.transcript = shown()
line, from, to = find('<txt>')
seen.parameters = completion(line, from + 1)
replace(line, from, to, '<text>')
line, from, to = find('</txt>')
replace(line, from, to, '</text>')
wait_for('the call to be right', function()
  return not has('VA403') and not has('VA404')
end)
seen.transcript_mended = shown()

-- A quick fix, as `gra` would apply it.
line, from, to = find('core:eccho')
vim.api.nvim_win_set_cursor(0, { line + 1, from })
wait_for('the unknown tool', function()
  return has('VA401')
end)
vim.lsp.buf.code_action({
  apply = true,
  filter = function(action)
    return action.title:find('core:echo', 1, true) ~= nil
  end,
})
wait_for('the quick fix to be applied', function()
  return find('core:eccho') == nil
end)
wait_for('the unknown tool to be known', function()
  return not has('VA401')
end)
seen.fixed_line = vim.api.nvim_buf_get_lines(0, line, line + 1, false)[1]

-- Hover.
vim.api.nvim_win_set_cursor(0, { line + 1, from + 1 })
local found = client()
local hover = vim.lsp.buf_request_sync(0, 'textDocument/hover', vim.lsp.util.make_position_params(0, found.offset_encoding), 300000)
hover = hover and hover[found.id] and hover[found.id].result
seen.hover = hover and hover.contents.value or ''

-- Files that are none of ours stay alone.
seen.clients = #vim.lsp.get_clients({ name = 'tamis' })
local others = {}
for name, path in pairs({
  json = workspace .. '/package.json',
  markdown = outside .. '/README.md',
}) do
  vim.cmd.edit(path)
  others[name] = vim.api.nvim_get_current_buf()
end
-- What is opened later is attached later.
vim.cmd.edit(workspace .. '/calls.vcp')
wait_for('a client on a VCP file', function()
  return client() ~= nil
end)
seen.vcp_filetype = vim.bo.filetype
for name, buffer in pairs(others) do
  seen['attached_to_other_' .. name] = #vim.lsp.get_clients({ bufnr = buffer }) > 0
end

-- The end.
local ids = {}
for _, one in ipairs(vim.lsp.get_clients({ name = 'tamis' })) do
  table.insert(ids, one.id)
end
vim.lsp.enable('tamis', false)
for _, id in ipairs(ids) do
  vim.lsp.stop_client(id)
end
wait_for('the clients to stop', function()
  return #vim.lsp.get_clients({ name = 'tamis' }) == 0
end)
seen.stopped = true
write()
os.exit(0)
