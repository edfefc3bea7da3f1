--- The verbs of `:Tamis`, and what of the server's commands an editor has a place of its own for.
local tamis = require('tamis')
local runs = require('tamis.run')
local M = {}

---@alias tamis.Arguments { words: string[], line1: integer, line2: integer, range: integer }

--- The place of the cursor as commands take it.
local function place(line, character)
  local buffer = vim.api.nvim_get_current_buf()
  local client = tamis.attached(buffer)
  if not client then
    return nil
  end
  local at = vim.lsp.util.make_position_params(0, client.offset_encoding).position
  if line then
    at = { line = line, character = character or 0 }
  end
  return {
    uri = vim.uri_from_bufnr(buffer),
    version = vim.lsp.util.buf_versions[buffer],
    range = { start = at, ['end'] = at },
  },
    client,
    buffer
end

local function execute(command, argument, client, buffer, done)
  if vim.startswith(command, 'tamis.run') or command == 'tamis.dryRun' or command == 'tamis.testExamples' then
    return runs.execute({ title = '', command = command, arguments = { argument } }, { client_id = client.id, bufnr = buffer }, done)
  end
  client:request('workspace/executeCommand', { command = command, arguments = { argument } }, function(fault, result)
    if fault then
      vim.notify('Tamis: ' .. fault.message, vim.log.levels.WARN)
    elseif done then
      done(result)
    end
  end, buffer)
end

--- Runs what stands in the range, or under the cursor: by the lenses, whose places are whole.
local function run(arguments, command)
  local _, client, buffer = place()
  if not client or not buffer then
    return
  end
  local first, last = arguments.line1 - 1, arguments.line2 - 1
  local params = { textDocument = { uri = vim.uri_from_bufnr(buffer) } }
  client:request('textDocument/codeLens', params, function(fault, found)
    if fault then
      return vim.notify('Tamis: ' .. fault.message, vim.log.levels.WARN)
    end
    local chosen = {}
    for _, lens in ipairs(found or {}) do
      local wanted = lens.command
        and (lens.command.command == command or (command == 'tamis.run' and lens.command.command == 'tamis.runExample'))
      -- Nothing is run unasked: what a block uses runs first by its own lens (`▶ Run with …`).
      local range = wanted and not lens.command.arguments[1].chain and lens.command.arguments[1].range
      local step = wanted and (lens.command.title:find('step', 1, true) or lens.command.title:find('步骤', 1, true))
      if range and not step and range.start.line <= last and first <= range['end'].line then
        table.insert(chosen, lens.command)
      end
    end
    if #chosen == 0 then
      return vim.notify('Tamis: there is no call here that would run', vim.log.levels.WARN)
    end
    for _, one in ipairs(chosen) do
      runs.execute(one, { client_id = client.id, bufnr = buffer })
    end
  end, buffer)
end

local function chosen(prompt, items, given, work)
  if given then
    return work(given)
  end
  vim.ui.select(items, { prompt = prompt }, function(item)
    if item then
      work(item)
    end
  end)
end

--- Copies a call in a form into the registers.
local function copy(argument, client, buffer, form)
  chosen('Copy this call as', tamis.options.forms, form, function(to)
    execute('tamis.copyAs', vim.tbl_extend('force', argument, { to = to, show = false }), client, buffer, function(made)
      vim.fn.setreg('"', made.text)
      pcall(vim.fn.setreg, '+', made.text)
      vim.notify('Copied as ' .. to, vim.log.levels.INFO)
    end)
  end)
end

local function convert(argument, client, buffer, form)
  chosen('Convert this call to', { 'action', 'tam', 'vcp' }, form, function(to)
    execute('tamis.convert', vim.tbl_extend('force', argument, { to = to }), client, buffer)
  end)
end

--- References as a list of the editor.
local function references(argument, client, buffer)
  execute('tamis.showReferences', vim.tbl_extend('force', argument, { show = false }), client, buffer, function(found)
    local items = vim.lsp.util.locations_to_items(found.locations, client.offset_encoding)
    vim.fn.setqflist({}, ' ', { title = 'References of ' .. argument.toolId, items = items })
    vim.cmd('botright copen')
  end)
end

--- For `vim.lsp.Config.commands`: lenses and code actions come here.
function M.of_server()
  local function through(command, context)
    runs.execute(command, context)
  end
  local function with(work)
    return function(command, context)
      work(command.arguments[1], assert(vim.lsp.get_client_by_id(context.client_id)), context.bufnr, command.arguments[1].to)
    end
  end
  return {
    ['tamis.run'] = through,
    ['tamis.dryRun'] = through,
    ['tamis.runExample'] = through,
    ['tamis.testExamples'] = through,
    ['tamis.rerunLast'] = through,
    ['tamis.copyAs'] = with(copy),
    ['tamis.convert'] = with(convert),
    ['tamis.showReferences'] = with(references),
    ['tamis.try'] = function(command)
      require('tamis.try').try(command.arguments[1].toolId)
    end,
  }
end

--- Runs the program; what it prints comes to `done`.
local function program(words, done)
  local config = vim.lsp.config.tamis
  local command = { config and type(config.cmd) == 'table' and config.cmd[1] or 'tamis', unpack(words) }
  local client = vim.lsp.get_clients({ name = 'tamis' })[1]
  vim.system(command, { text = true, cwd = client and client.root_dir or vim.fn.getcwd() }, function(out)
    vim.schedule(function()
      if out.code ~= 0 then
        return vim.notify('Tamis: ' .. vim.trim(out.stderr or ''), vim.log.levels.ERROR)
      end
      done(out.stdout or '')
    end)
  end)
end

local function show(name, filetype, text)
  vim.cmd.new()
  local buffer = vim.api.nvim_get_current_buf()
  vim.bo[buffer].buftype, vim.bo[buffer].bufhidden, vim.bo[buffer].swapfile = 'nofile', 'wipe', false
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(vim.trim(text), '\n'))
  vim.bo[buffer].filetype = filetype
  pcall(vim.api.nvim_buf_set_name, buffer, name)
end

-- Examples as tests, what failed in the quickfix list

local function test()
  local client = tamis.client()
  if not client then
    return
  end
  local tests = require('tamis.tests')
  tests.list(client, function(listed)
    local known, items, passed = {}, {}, 0
    for _, one in ipairs(listed) do
      known[one.id] = one
    end
    tests.run({
      client = client,
      on_state = function(id, state)
        local found = known[id]
        if state.tag == 'passed' then
          passed = passed + 1
        elseif state.tag == 'failed' and found then
          table.insert(items, {
            filename = vim.uri_to_fname(found.textDocument.uri),
            lnum = found.range.start.line + 1,
            col = found.range.start.character + 1,
            type = 'E',
            text = ('%s: %s'):format(found.label, (state.message or ''):gsub('\n', ' ')),
          })
        end
      end,
      on_end = function(fault)
        if fault then
          return vim.notify('Tamis: ' .. fault, vim.log.levels.WARN)
        end
        vim.fn.setqflist({}, ' ', { title = 'tamis test', items = items })
        vim.notify(('Tamis: %d passed, %d failed'):format(passed, #items), #items > 0 and vim.log.levels.WARN or vim.log.levels.INFO)
        if #items > 0 then
          vim.cmd('botright copen')
        end
        tamis.event('TamisTestsEnd', { passed = passed, failed = #items })
      end,
    })
  end)
end

local function approvals()
  local client = tamis.client()
  if not client then
    return
  end
  client:request('approval/list', vim.empty_dict(), function(fault, found)
    local held = not fault and found.approvals or {}
    if #held == 0 then
      return vim.notify('Tamis: no answers hold', vim.log.levels.INFO)
    end
    vim.ui.select(held, {
      prompt = 'Answers that hold; take back',
      format_item = function(one)
        return ('%s %s: %s'):format(one.toolId, one.version, one.kind:gsub('_', ' '))
      end,
    }, function(one)
      if one then
        client:request('approval/revoke', { id = one.id }, function() end)
      end
    end)
  end)
end

local function refused()
  local last = runs.history[1]
  local lines = {}
  for _, result in ipairs(last and last.results or {}) do
    for _, one in ipairs(result.permissions and result.permissions.denied or {}) do
      table.insert(lines, ('%s: %s %s (%s)'):format(result.toolId, one.kind, one.value, one.reason))
    end
  end
  vim.notify(#lines > 0 and table.concat(lines, '\n') or 'Tamis: the last run was refused nothing', vim.log.levels.INFO)
end

local function at_cursor(work)
  return function(arguments)
    local argument, client, buffer = place()
    if argument and client then
      work(argument, client, buffer, arguments.words[2])
    end
  end
end

---@type table<string, fun(arguments: tamis.Arguments)>
M.verbs = {
  run = function(arguments)
    run(arguments, 'tamis.run')
  end,
  dryrun = function(arguments)
    run(arguments, 'tamis.dryRun')
  end,
  cancel = function()
    if runs.cancel() == 0 then
      vim.notify('Tamis: nothing runs', vim.log.levels.INFO)
    end
  end,
  rerun = function()
    local client = tamis.client()
    if client then
      local last = runs.history[1]
      local argument = vim.empty_dict()
      runs.execute({ title = '', command = 'tamis.rerunLast', arguments = { argument } }, {
        client_id = client.id,
        bufnr = last and last.buffer or vim.api.nvim_get_current_buf(),
      })
    end
  end,
  result = function()
    runs.result()
  end,
  output = function()
    require('tamis.output').open()
  end,
  history = runs.choose,
  convert = at_cursor(convert),
  copy = at_cursor(copy),
  prompt = at_cursor(function(argument, client, buffer, protocol)
    execute('tamis.previewPrompt', { uri = argument.uri, protocol = protocol, show = false }, client, buffer, function(made)
      show('tamis-prompt://' .. made.toolId, 'markdown', made.text)
    end)
  end),
  new = function(arguments)
    chosen('', {}, arguments.words[2], function(name)
      program({ 'new', unpack(arguments.words, 2) }, function(out)
        vim.notify(vim.trim(out), vim.log.levels.INFO)
        local made = vim.fn.glob(('**/%s/*.tool.json'):format((name:match('[^:]*$'))), false, true)[1]
        if made then
          vim.cmd.edit(vim.fn.fnameescape(made))
        end
      end)
    end)
  end,
  import = function(arguments)
    program({ 'import', unpack(arguments.words, 2) }, function(out)
      show('tamis-import', 'json', out)
    end)
  end,
  export = function(arguments)
    chosen(
      'Export the tools as',
      { 'mcp', 'openai', 'openai-strict', 'anthropic', 'gemini', 'vcp', 'caiu' },
      arguments.words[2],
      function(target)
        program({ 'export', target }, function(out)
          show('tamis-export-' .. target, 'json', out)
        end)
      end
    )
  end,
  test = test,
  try = function(arguments)
    require('tamis.try').try(arguments.words[2])
  end,
  permissions = refused,
  approvals = approvals,
  install = function(arguments)
    require('tamis.install').install(arguments.words[2])
  end,
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

local seconds = {
  copy = tamis.options.forms,
  convert = { 'action', 'tam', 'vcp' },
  prompt = { 'action', 'tam', 'vcp', 'json' },
  export = { 'mcp', 'openai', 'openai-strict', 'anthropic', 'gemini', 'vcp', 'caiu' },
  import = { 'comfyui', 'mcp', 'n8n', 'openai', 'openapi', 'python', 'vcp' },
}

--- The words that a beginning can become.
function M.complete(lead, line)
  local words = vim.split(vim.trim((line:gsub("^[%s:'<>,%d%%.$]*", ''))), '%s+')
  local first = #words > 2 or (#words == 2 and lead == '')
  local offered = first and (seconds[words[2]] or {}) or vim.fn.sort(vim.tbl_keys(M.verbs))
  return vim.tbl_filter(function(name)
    return vim.startswith(name, lead)
  end, offered)
end

--- `:Tamis`.
function M.command(args)
  local verb = M.verbs[args.fargs[1]]
  if verb == nil then
    vim.notify("Tamis: no command '" .. tostring(args.fargs[1]) .. "'; see :help :Tamis", vim.log.levels.ERROR)
    return
  end
  verb({ words = args.fargs, line1 = args.line1, line2 = args.line2, range = args.range })
end

return M
