--- An adapter of neotest: `adapters = { require('neotest-tamis') }`. The server lists the tests and runs them; a run's output is what differs.
local nio = require('nio')
local tests = require('tamis.tests')

---@class neotest.Adapter
local M = { name = 'neotest-tamis' }

local text_endings = { md = true, markdown = true, txt = true, tam = true, vcp = true, action = true }
local read_at_most = 1024 * 1024
local start_within_ms = 10000

function M.root(dir)
  local marked = vim.fs.root(dir, { 'tamis.toml', '.tamis' })
  if marked then
    return marked
  end
  local folder = vim.fs.root(dir, { '.git' }) or dir
  return require('tamis').holds_manifests(folder) and folder or nil
end

function M.filter_dir(name)
  return name ~= 'node_modules' and name:sub(1, 1) ~= '.'
end

--- Whether a file can have tests, by its name and a word in it; which there are is the server's to say.
function M.is_test_file(path)
  local manifest = path:match('%.tool%.jsonc?$') ~= nil
  if not manifest and not text_endings[path:match('%.(%w+)$') or ''] then
    return false
  end
  local file = io.open(path, 'rb')
  local text = file and file:read(read_at_most) or ''
  if file then
    file:close()
  end
  return text:find(manifest and '"examples"' or '%f[%w]expect%f[%W]') ~= nil
end

--- The server of a root; started where no buffer has done it yet, as opening a manifest there would.
---@async
---@param root string
---@return vim.lsp.Client?
local function client_of(root)
  nio.scheduler()
  local client
  for _, one in ipairs(vim.lsp.get_clients({ name = 'tamis' })) do
    client = one.root_dir == root and one or client
  end
  if not client then
    local config = vim.lsp.config.tamis
    local id = config and vim.lsp.start(vim.tbl_extend('force', config, { name = 'tamis', root_dir = root }), { attach = false })
    client = id and vim.lsp.get_client_by_id(id)
  end
  local until_ms = vim.uv.now() + start_within_ms
  while client and not client.initialized and not client:is_stopped() and vim.uv.now() < until_ms do
    nio.sleep(20)
  end
  return client and client.initialized and client or nil
end

local list = nio.wrap(function(client, done)
  tests.list(client, function(found)
    done(found)
  end)
end, 2)

---@type table<string, { at: number, found: tamis.Test[] }> what was listed of a root a moment ago: a scan asks for file after file
local listed = {}

function M.discover_positions(path)
  nio.scheduler()
  local root = M.root(vim.fs.dirname(path))
  local client = root and client_of(root)
  if not client then
    return nil
  end
  local before = listed[root]
  if not before or vim.uv.now() - before.at > 500 then
    local found = list(client)
    before = { at = vim.uv.now(), found = found }
    listed[root] = before
  end
  nio.scheduler()
  local file = { id = path, type = 'file', name = vim.fs.basename(path), path = path, range = { 0, 0, 0, 0 } }
  local positions = { file }
  for _, test in ipairs(before.found) do
    if vim.fs.normalize(vim.uri_to_fname(test.textDocument.uri)) == vim.fs.normalize(path) then
      local first, last = test.range.start, test.range['end']
      if test.kind == 'test' then
        table.insert(positions, {
          {
            id = path .. '::' .. test.id:match('[^#]*$'),
            type = 'test',
            name = test.label,
            path = path,
            range = { first.line, first.character, last.line, last.character },
            server_id = test.id,
          },
        })
      end
      file.range[3] = math.max(file.range[3], last.line + 1)
    end
  end
  if #positions == 1 then
    return nil
  end
  return require('neotest.types').Tree.from_list(positions, function(position)
    return position.id
  end)
end

--- What a test gave, as lines.
local function report(name, state)
  local lines = { ('%s: %s'):format(name, state.tag) }
  if state.expected and state.actual then
    vim.list_extend(lines, { '', '--- expected', '+++ given' })
    table.insert(lines, vim.trim(vim.diff(state.expected .. '\n', state.actual .. '\n', { ctxlen = 3 }) --[[@as string]]))
  elseif state.message then
    vim.list_extend(lines, { '', state.message })
  end
  return table.concat(lines, '\n') .. '\n'
end

local function write(path, text)
  local file = io.open(path, 'wb')
  if file then
    file:write(text)
    file:close()
  end
end

---@return neotest.Result?
local function result_of(position, state)
  if state.tag ~= 'passed' and state.tag ~= 'failed' and state.tag ~= 'skipped' then
    return nil
  end
  local output = vim.fn.tempname()
  local text = report(position.name, state)
  write(output, text)
  local result = { status = state.tag, output = output, short = text }
  if state.tag == 'failed' then
    local line = state.range and state.range.start.line or position.range[1]
    result.errors = { { message = state.message or 'failed', line = line } }
  end
  return result
end

--- A run of the server as neotest's processes are: there is no program to start.
---@async
---@return neotest.Process?
local function process(spec)
  local context = spec.context
  local client = client_of(context.root)
  if not client then
    return nil
  end
  nio.scheduler()
  local done, output = nio.control.event(), vim.fn.tempname()
  local lines, code = {}, 0
  local run
  run = {
    client = client,
    ids = vim.tbl_keys(context.positions),
    on_state = function(id, state)
      local position = context.positions[id]
      local result = position and result_of(position, state)
      if result then
        context.results[position.id] = result
        code = state.tag == 'failed' and 1 or code
        table.insert(lines, result.short)
      end
    end,
    on_end = function(fault)
      if fault then
        table.insert(lines, fault)
        code = 1
      end
      write(output, table.concat(lines, '\n') .. '\n')
      done.set()
    end,
  }
  tests.run(run)
  return {
    is_complete = done.is_set,
    result = function()
      done.wait()
      return code
    end,
    output = function()
      return output
    end,
    output_stream = function()
      return function()
        done.wait()
      end
    end,
    attach = function() end,
    stop = function()
      tests.stop(run)
    end,
  }
end

function M.build_spec(args)
  local positions, first = {}, nil
  for _, position in args.tree:iter() do
    if position.type == 'test' and position.server_id then
      positions[position.server_id] = position
      first = first or position
    end
  end
  if not first then
    return nil
  end
  return {
    command = {},
    strategy = process,
    context = { root = M.root(vim.fs.dirname(first.path)), positions = positions, results = {} },
  }
end

function M.results(spec)
  return spec.context.results
end

return M
