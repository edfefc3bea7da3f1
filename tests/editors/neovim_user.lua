-- Plays a user: drives a second Neovim by its keys and its own LSP functions, and writes down what that one shows.
-- Usage: nvim --headless -u NONE -i NONE -l neovim_user.lua PLUGIN_DIR WORKSPACE RESULT_FILE RECIPE
-- RECIPE is the Lua that the documentation gives for lenses, hints, completion and folds.
local plugin, workspace, result_file, recipe = unpack(_G.arg)
local seen = { took = {} }
local failed

local editor = vim.fn.jobstart({ vim.v.progpath, '--embed', '--headless', '-u', 'NONE', '-i', 'NONE', '-n' }, {
  rpc = true,
  cwd = workspace,
  on_exit = function(_, code)
    seen.exit_code = code
  end,
})

local function lua(code, ...)
  return vim.rpcrequest(editor, 'nvim_exec_lua', code, { ... })
end

local function keys(text)
  vim.rpcrequest(editor, 'nvim_input', text)
end

local function finish(code)
  vim.fn.writefile({ vim.json.encode(seen) }, result_file)
  os.exit(code)
end

--- Asks the other Neovim until it answers something; gives the answer.
local function wait(what, code, ...)
  local arguments = { ... }
  local found
  local ok = vim.wait(300000, function()
    local answer = lua(code, unpack(arguments))
    if answer ~= nil and answer ~= vim.NIL and answer ~= false then
      found = answer
      return true
    end
    return false
  end, 20)
  if not ok then
    error('waited in vain for ' .. what .. ': ' .. vim.inspect(lua('return { shown(), vim.api.nvim_buf_get_lines(0, 0, -1, false), messages, asked, vim.fn.mode() }')))
  end
  return found
end

--- Does one feature; what goes wrong is written down under its name.
local function feature(name, work)
  if failed then
    return
  end
  local started = vim.uv.hrtime()
  local ok, answer = pcall(work)
  seen.took[name] = math.floor((vim.uv.hrtime() - started) / 1e6)
  if ok then
    seen[name] = answer
  else
    failed = name
    seen.failed = { step = name, why = tostring(answer) }
  end
end

lua(
  [[
  local plugin, recipe = ...
  vim.o.swapfile = false
  vim.o.hidden = true
  vim.o.cmdheight = 8
  vim.opt.completeopt = { 'menuone', 'noselect' }
  vim.opt.runtimepath:prepend(plugin)
  vim.opt.runtimepath:append(plugin .. '/after')
  vim.cmd('filetype on')
  vim.cmd.runtime({ 'ftdetect/*.lua', bang = true })
  vim.cmd.runtime('plugin/tamis.lua')
  -- Findings pushed, and files watched by the editor: the other session has neither.
  vim.lsp.config('tamis', {
    capabilities = {
      textDocument = { diagnostic = false },
      workspace = { didChangeWatchedFiles = { dynamicRegistration = true } },
    },
  })
  vim.cmd.luafile(recipe)
  vim.lsp.enable('tamis')

  messages, asked, pick, progress = {}, {}, {}, {}
  local show = vim.lsp.handlers['window/showMessage']
  vim.lsp.handlers['window/showMessage'] = function(fault, result, context)
    table.insert(messages, result.message)
    return show(fault, { type = result.type, message = result.message:match('[^\n]*') }, context)
  end
  -- What the plug-in tells itself.
  local notify = vim.notify
  vim.notify = function(text, ...)
    table.insert(messages, text)
    return notify(text, ...)
  end
  vim.ui.select = function(items, options, choose)
    local titles = vim.tbl_map(options.format_item or tostring, items)
    table.insert(asked, { prompt = options.prompt, titles = titles })
    for _, wanted in ipairs(pick) do
      for number, title in ipairs(titles) do
        if title:find(wanted, 1, true) then
          return choose(items[number], number)
        end
      end
    end
    choose(nil, nil)
  end
  vim.api.nvim_create_autocmd('LspProgress', {
    callback = function(event)
      table.insert(progress, event.data.params)
    end,
  })

  function client()
    return vim.lsp.get_clients({ bufnr = 0, name = 'tamis' })[1]
  end
  function open(name)
    vim.cmd.edit(vim.fn.fnameescape(name))
  end
  function shown()
    return vim.tbl_map(function(item)
      local space = vim.diagnostic.get_namespace(item.namespace)
      return { code = item.code, message = item.message, space = space.name, line = item.lnum }
    end, vim.diagnostic.get(0))
  end
  function has(code)
    for _, item in ipairs(vim.diagnostic.get(0)) do
      if item.code == code then
        return true
      end
    end
    return false
  end
  function place(text, offset)
    vim.api.nvim_win_set_cursor(0, { 1, 0 })
    local found = vim.fn.search('\\V' .. text, 'cW')
    assert(found > 0, text)
    local at = vim.api.nvim_win_get_cursor(0)
    vim.api.nvim_win_set_cursor(0, { at[1], at[2] + (offset or 0) })
  end
  function lines()
    return vim.api.nvim_buf_get_lines(0, 0, -1, false)
  end
  -- The text of the open float, and it is closed.
  function float()
    for _, window in ipairs(vim.api.nvim_list_wins()) do
      if vim.api.nvim_win_get_config(window).relative ~= '' then
        local text = table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false), '\n')
        vim.api.nvim_win_close(window, true)
        return text
      end
    end
  end
  -- What stands as virtual text in this buffer, in namespaces of a name.
  function virtual(name)
    local found = {}
    for space, id in pairs(vim.api.nvim_get_namespaces()) do
      if space:find(name, 1, true) then
        for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, id, 0, -1, { details = true })) do
          for _, chunk in ipairs(mark[4].virt_text or {}) do
            table.insert(found, chunk[1])
          end
        end
      end
    end
    return found
  end
  function ask(method, params)
    local answer, fault = client():request_sync(method, params, 300000, 0)
    return answer and answer.result
  end
  function here()
    return vim.lsp.util.make_position_params(0, client().offset_encoding)
  end
]],
  plugin,
  recipe
)

local function open(name)
  lua('open(...)', name)
  wait('a client on ' .. name, 'return client() ~= nil and client().initialized')
end

local function lenses(part)
  lua('vim.lsp.codelens.refresh({ bufnr = 0 })')
  return wait(
    'the lens ' .. part,
    [[
    local found = virtual('codelens')
    local text = table.concat(found, '|')
    if text:find(..., 1, true) and not text:find('Unresolved', 1, true) then return found end
  ]],
    part
  )
end

feature('pushed', function()
  open('broken.tool.json')
  return wait('the missing script', "return has('MF540') and shown()")
end)

feature('created', function()
  lua([[
    place('missing.py', 2)
    vim.lsp.buf.code_action({ apply = true, filter = function(action) return action.title:find('Create the script', 1, true) end })
  ]])
  return wait(
    'the new script',
    [[
    local number = vim.fn.bufnr('missing.py')
    local text = number > 0 and table.concat(vim.api.nvim_buf_get_lines(number, 0, -1, false), '\n') or ''
    return text ~= '' and { text = text, here = vim.fs.basename(vim.api.nvim_buf_get_name(0)) }
  ]]
  )
end)

feature('created_seen', function()
  lua("open('missing.py') vim.cmd('silent write') open('broken.tool.json')")
  return wait('the script to be found', "return not has('MF540')")
end)

feature('formatted', function()
  open('messy.tool.json')
  lua('vim.lsp.buf.format({ timeout_ms = 300000 })')
  return lua('return lines()')
end)

feature('hints', function()
  return wait(
    'hints',
    [[
    local found = vim.lsp.inlay_hint.get({ bufnr = 0 })
    return #found > 0 and vim.tbl_map(function(one)
      local label = one.inlay_hint.label
      return type(label) == 'string' and label or table.concat(vim.tbl_map(function(part) return part.value end, label))
    end, found)
  ]]
  )
end)

feature('symbols', function()
  lua([[
    outline, found_tools = nil, nil
    vim.lsp.buf.document_symbol({ on_list = function(list) outline = list.items end })
    vim.lsp.buf.workspace_symbol('echo', { on_list = function(list) found_tools = list.items end })
  ]])
  return wait(
    'symbols',
    [[
    if not (outline and found_tools) then return end
    local function text(item) return item.text end
    return { document = vim.tbl_map(text, outline), workspace = vim.tbl_map(text, found_tools) }
  ]]
  )
end)

feature('hover', function()
  open('calls.md')
  wait('the calls to be checked', "return has('VA401')")
  lua("place('t:echo', 3) vim.lsp.buf.hover()")
  return wait('a float', 'return float()')
end)

feature('signature', function()
  lua("place('loud', 1) vim.lsp.buf.signature_help()")
  return wait('a float', 'return float()')
end)

feature('tokens', function()
  return wait(
    'semantic tokens',
    [[
    place('t:echo', 3)
    local at = vim.api.nvim_win_get_cursor(0)
    local found = vim.lsp.semantic_tokens.get_at_pos(0, at[1] - 1, at[2])
    return found and found[1] and { type = found[1].type, modifiers = vim.tbl_keys(found[1].modifiers) }
  ]]
  )
end)

feature('highlighted', function()
  lua("place('t:echo', 3) vim.lsp.buf.document_highlight()")
  return wait(
    'highlights',
    [[
    local space = vim.api.nvim_get_namespaces()['nvim.lsp.references'] or -1
    local found = space >= 0 and vim.api.nvim_buf_get_extmarks(0, space, 0, -1, {}) or {}
    return #found > 0 and vim.tbl_map(function(mark) return mark[2] end, found)
  ]]
  )
end)

feature('folds', function()
  lua('vim.wo.foldlevel = 0')
  local found = wait('folds', "place('<ACTION>') local line = vim.fn.line('.') local last = vim.fn.foldclosedend(line) return last > line and { line, last }")
  lua('vim.wo.foldlevel = 99')
  return found
end)

feature('selections', function()
  return lua([[
    place('loud', 1)
    local at = here()
    local found = ask('textDocument/selectionRange', { textDocument = at.textDocument, positions = { at.position } })
    local texts, one = {}, found and found[1]
    while one do
      local first, last = one.range.start, one.range['end']
      if last.line < vim.api.nvim_buf_line_count(0) then
        table.insert(texts, table.concat(vim.api.nvim_buf_get_text(0, first.line, first.character, last.line, last.character, {}), '\n'))
      end
      one = one.parent
    end
    return texts
  ]])
end)

feature('linked', function()
  -- Neovim 0.11 has no function for this yet: what one of a later version would be given.
  return lua([[
    place('t:echo', 3)
    local found = ask('textDocument/linkedEditingRange', here())
    return vim.tbl_map(function(range) return range.start.line end, found.ranges)
  ]])
end)

feature('definition', function()
  lua("place('t:echo', 3) vim.lsp.buf.definition()")
  local found = wait('the manifest', "local name = vim.api.nvim_buf_get_name(0) return name:find('tool.json', 1, true) and vim.fs.basename(name)")
  lua("open('calls.md')")
  return found
end)

feature('references', function()
  lua("refs = nil place('t:echo', 3) vim.lsp.buf.references(nil, { on_list = function(list) refs = list.items end })")
  return wait('references', "return refs and vim.tbl_map(function(item) return vim.fs.basename(item.filename) end, refs)")
end)

feature('lenses', function()
  return lenses('Run')
end)

feature('ran', function()
  lua("messages, asked, pick = {}, {}, { '▶ Run' } place('<ACTION>') vim.lsp.codelens.run()")
  local message = wait('the outcome', 'return messages[1]')
  local observation = lua("return require('tamis.run').history[1].observation")
  return { message = message, observation = observation, offered = lua('return asked[1]'), lenses = lenses('✓') }
end)

feature('result_hints', function()
  return wait(
    'the outcome as a hint',
    [[
    vim.cmd.redraw() -- hints are placed when a window is drawn
    for _, text in ipairs(virtual('inlayhint')) do
      if text:find('✓', 1, true) then return text end
    end
  ]]
  )
end)

feature('cancelled', function()
  open('sleeps.vcp')
  lenses('Run')
  lua("messages, progress, pick = {}, {}, { '▶ Run' } place('TOOL_REQUEST') vim.lsp.codelens.run()")
  local begun = wait('progress', "for _, one in ipairs(progress) do if one.value.kind == 'begin' then return one end end")
  lua("local token = ... client():notify('window/workDoneProgress/cancel', { token = token })", begun.token)
  local message = wait('the outcome', 'return messages[1]')
  return {
    title = begun.value.title,
    cancellable = begun.value.cancellable,
    message = message,
    ended = wait('the end of the progress', "for _, one in ipairs(progress) do if one.value.kind == 'end' then return true end end"),
  }
end)

feature('request_cancelled', function()
  local id = lua([[
    answer = nil
    progress = {}
    for _, lens in ipairs(vim.lsp.codelens.get(0)) do
      if lens.command.title == '▶ Run' then
        local _, id = client():request('workspace/executeCommand', lens.command, function(_, result) answer = result end)
        return id
      end
    end
  ]])
  wait('progress', "return #progress > 0")
  lua('client():cancel_request(...)', id)
  return wait('the answer', 'return answer and answer.status')
end)

feature('approved', function()
  open('asks.tam')
  lenses('Run')
  lua("messages, asked, pick = {}, {}, { '▶ Run', 'Allow once' } place('REQUEST_TOOL') vim.lsp.codelens.run()")
  local message = wait('the outcome', 'return messages[1]')
  return { message = message, asked = lua('return asked[#asked]') }
end)

feature('denied', function()
  lua("messages, asked, pick = {}, {}, { '▶ Run', 'Deny' } place('REQUEST_TOOL')")
  lenses('Run')
  lua('vim.lsp.codelens.run()')
  return wait('the outcome', 'return messages[1]')
end)

-- The plug-in's own: virtual text, the float, the verbs

feature('shown_while', function()
  open('sleeps.vcp')
  lua([[
    started, ended, registry = nil, nil, nil
    vim.api.nvim_create_autocmd('User', { pattern = 'TamisRunStart', callback = function(event) started = event.data end })
    vim.api.nvim_create_autocmd('User', { pattern = 'TamisRunEnd', callback = function(event) ended = event.data end })
    vim.lsp.inlay_hint.enable(false)
    place('TOOL_REQUEST')
    vim.cmd('Tamis run')
  ]])
  local text = wait('the clock', "for _, text in ipairs(virtual('tamis_runs')) do if text:find('⏳', 1, true) and text ~= '⏳ 0.0s' then return text end end")
  local status = wait('the status', "local text = require('tamis').status() return text:find('t:sleep', 1, true) and text")
  lua("vim.cmd('Tamis cancel')")
  local after = wait('the outcome', "for _, text in ipairs(virtual('tamis_runs')) do if text:find('✘', 1, true) then return text end end")
  return { text = text, status = status, after = after, started = lua('return started ~= nil'), ended = lua('return ended.run.status') }
end)

feature('live', function()
  lua("vim.cmd.edit('talks.vcp')")
  wait('the client', 'return client() ~= nil')
  lua([[
    widest_of = {}
    local plain = require('tamis.output').plain
    require('tamis.output').plain = function(text)
      local shown = plain(text)
      table.insert(widest_of, shown)
      return shown
    end
  ]])
  lua("ended = nil vim.cmd('Tamis output') place('TOOL_REQUEST') vim.cmd('Tamis run')")
  local text = wait('the last line', "for _, text in ipairs(virtual('tamis_runs')) do if text:find('half a line', 1, true) then return text end end")
  local log = "vim.api.nvim_buf_get_lines(vim.fn.bufnr('tamis://output'), 0, -1, false)"
  local while_running = wait('the lines', 'local all = ' .. log .. " return vim.list_contains(all, 'line 2999') and all")
  local followed = lua([[
    local buffer = vim.fn.bufnr('tamis://output')
    local window = vim.fn.win_findbuf(buffer)[1]
    return { at_end = vim.api.nvim_win_get_cursor(window)[1] == vim.api.nvim_buf_line_count(buffer), focus = vim.api.nvim_get_current_win() ~= window, modifiable = vim.bo[buffer].modifiable }
  ]])
  local widest = lua("local most = 0 for _, text in ipairs(widest_of) do most = math.max(most, vim.fn.strchars(text)) end return most")
  lua("vim.cmd('Tamis cancel')")
  wait('the end', 'return ended and ended.run')
  local clock = lua("return table.concat(virtual('tamis_runs')):find('⏳', 1, true) == nil")
  local last = wait('the outcome', 'local all = ' .. log .. " return all[#all]:find('cancelled', 1, true) and all[#all - 1] == 'half a line' and all[#all]")
  lua([[
    local window = vim.fn.win_findbuf(vim.fn.bufnr('tamis://output'))[1]
    vim.api.nvim_win_call(window, function() vim.api.nvim_feedkeys('q', 'x', false) end)
  ]])
  return { text = text, log = while_running, followed = followed, last = last, widest = widest, clock_gone = clock, closed = lua("return #vim.fn.win_findbuf(vim.fn.bufnr('tamis://output')) == 0") }
end)

feature('inline', function()
  lua("vim.cmd.edit('inline.md')")
  wait('the client', 'return client() ~= nil')
  local hover = lua([[
    place('city')
    local params = vim.lsp.util.make_position_params(0, client().offset_encoding)
    return vim.inspect(client():request_sync('textDocument/hover', params, 300000).result)
  ]])
  lua("ends = {} vim.api.nvim_create_autocmd('User', { pattern = 'TamisRunEnd', callback = function(event) table.insert(ends, event.data.run and event.data.run.status or 'failed') end })")
  lua("said = {} before_notify = vim.notify vim.notify = function(text) table.insert(said, text) end place('first.output') vim.cmd('Tamis run')")
  wait('the end', 'return #ends > 0')
  wait('the reason', 'return #said > 0')
  local alone = lua('return ends')
  local why = lua("vim.notify = before_notify return table.concat(said, ' ')")
  lua([[
    local found = client():request_sync('textDocument/codeLens', { textDocument = { uri = vim.uri_from_bufnr(0) } }, 300000).result
    for _, lens in ipairs(found) do
      if lens.command and lens.command.title:find('Run with first', 1, true) then
        client():exec_cmd(lens.command, { bufnr = 0 })
      end
    end
  ]])
  local chain = wait('the result', "local run = require('tamis.run').history[1] return run and run.results[1] and run.results[1].output and vim.json.encode(run.results[1].output):gsub('\":', '\": '):match('\"text\": \"Oslo\"')")
  local found = wait('the finding', "local rows = {} for _, one in ipairs(vim.diagnostic.get(0)) do if one.code == 'VA462' then table.insert(rows, { one.lnum, one.code }) end end return #rows > 0 and rows")
  lua("place('city') vim.lsp.buf.rename('town')")
  local renamed = wait(
    'the rename',
    [[
    local changed = {}
    for _, name in ipairs({ 'inline.md', 'tamis.toml' }) do
      local buffer = vim.fn.bufnr(name)
      for _, line in ipairs(buffer > 0 and vim.api.nvim_buf_get_lines(buffer, 0, -1, false) or {}) do
        if line:find('town', 1, true) then
          changed[name] = changed[name] or {}
          table.insert(changed[name], line)
        end
      end
    end
    return changed['inline.md'] and changed['tamis.toml'] and changed
  ]]
  )
  lua("said = {} vim.notify = function(text) table.insert(said, text) end place('Later') vim.lsp.buf.rename('x')")
  local refused = wait('the reason', "return #said > 0 and table.concat(said):find('can be renamed', 1, true) ~= nil")
  lua("vim.notify = before_notify vim.cmd('silent! wall')")
  return { hover = hover, alone = alone, why = why, chain = chain, found = found, renamed = renamed, refused = refused }
end)

feature('plain', function()
  return lua([[
    local found = {}
    for _, text in ipairs({
      '\27[31mred\27[0m \27]0;title\7bell\7',
      '10%\r50%\r100%',
      'done\r',
      'a\tb',
      '\226\128\174back \194\155c1 \239\187\191',
      '你好 😀 é',
      'nul\0 \27(',
    }) do
      found[text] = require('tamis.output').plain(text)
    end
    return found
  ]])
end)

feature('shown_after', function()
  open('calls.md')
  lua("place('<ACTION>') vim.cmd('Tamis run')")
  local text = wait('the outcome', "for _, text in ipairs(virtual('tamis_runs')) do if text:find('✔', 1, true) then return text end end")
  lua("place('loud') vim.api.nvim_set_current_line('    <mode>plain</mode>')")
  local gone = wait('its end', "return not table.concat(virtual('tamis_runs')):find('✔', 1, true)")
  lua("vim.cmd('undo')")
  return { text = text, gone = gone, idle = lua("return require('tamis').status()") }
end)

feature('float', function()
  lua("vim.cmd('Tamis result')")
  local found = lua([[
    local window = vim.api.nvim_get_current_win()
    local function page(key)
      vim.api.nvim_feedkeys(key, 'x', false)
      return table.concat(lines(), '\n')
    end
    local pages = { relative = vim.api.nvim_win_get_config(window).relative, winbar = vim.wo[window].winbar, output = page('1'), permissions = page('3'), raw = page('4') }
    vim.api.nvim_feedkeys('q', 'x', false)
    pages.closed = not vim.api.nvim_win_is_valid(window)
    return pages
  ]])
  return found
end)

feature('ranged', function()
  lua("vim.cmd.edit('two.md')")
  wait('the client', 'return client() ~= nil')
  lua("both = {} vim.api.nvim_create_autocmd('User', { pattern = 'TamisRunEnd', callback = function(event) table.insert(both, event.data.run.outcome) end })")
  lua("vim.cmd('1,$Tamis run')")
  return wait('both', 'return #both == 2 and both')
end)

feature('verbs', function()
  return lua([[
    local maps = {}
    for _, map in ipairs(vim.api.nvim_get_keymap('n')) do
      local name = map.lhs:match('^<Plug>%((Tamis%w+)%)$')
      if name then table.insert(maps, name) end
    end
    table.sort(maps)
    return {
      all = vim.fn.getcompletion('Tamis ', 'cmdline'),
      ranged = vim.fn.getcompletion("'<,'>Tamis ru", 'cmdline'),
      copy = vim.fn.getcompletion('Tamis copy o', 'cmdline'),
      maps = maps,
      alias = vim.fn.exists(':LspTamisRun'),
      schema = require('tamis').schema().fileMatch,
      plain = vim.tbl_isempty(vim.tbl_filter(function(map) return (map.rhs or ''):find('Tamis', 1, true) and not map.lhs:find('Plug', 1, true) end, vim.api.nvim_get_keymap('n'))),
    }
  ]])
end)

feature('copied', function()
  open('calls.md')
  lua("place('<ACTION>') asked, pick = {}, { 'cli' } vim.cmd('Tamis copy')")
  return wait('the register', "local text = vim.fn.getreg('\"') return text:find('tamis call', 1, true) and { text = text, asked = asked[1].titles }")
end)

feature('tested', function()
  lua("vim.fn.setqflist({}) vim.cmd('Tamis test')")
  local found = wait('the list', "local items = vim.fn.getqflist() return #items > 0 and { text = items[1].text, file = vim.fs.basename(vim.api.nvim_buf_get_name(items[1].bufnr)), line = items[1].lnum }")
  lua("vim.cmd('cclose')")
  return found
end)

feature('tried', function()
  open('more.tam')
  lua([[
    pick, prompts, inputs = { 'loud', 'Run' }, {}, { 'said <b>' }
    local input = vim.ui.input
    vim.ui.input = function(options, done)
      table.insert(prompts, options.prompt)
      done(table.remove(inputs, 1))
    end
    vim.cmd('Tamis try t:echo')
  ]])
  local shown = wait('what came of it', [[
    local name = vim.api.nvim_buf_get_name(0)
    return name:find('tamis%-try://t:echo') and table.concat(lines(), '\n')
  ]])
  lua("vim.cmd('bwipeout!') open('tried.md') pick, inputs = { 'not given', 'Write' }, { 'a' } vim.cmd('Tamis try t:echo')")
  local written = wait('the call', "return table.concat(lines(), '\\n'):find('</t:echo>', 1, true) and lines()")
  lua("vim.cmd('bwipeout!')")
  return { shown = shown, written = written, prompts = lua('return prompts') }
end)

feature('made', function()
  open('calls.md')
  lua("vim.cmd('Tamis new made:shout')")
  local made = wait('the manifest', "return vim.api.nvim_buf_get_name(0):match('[^/]*%.tool%.json$')")
  lua("open('calls.md') vim.cmd('Tamis export openai')")
  local exported = wait('the export', "return vim.api.nvim_buf_get_name(0):find('tamis%-export') and table.concat(lines(), '\\n')")
  lua([[
    vim.cmd('bwipeout!')
    open('calls.md')
    vim.fn.writefile({ '{"tools": [{"name": "far_away", "description": "Is far away.", "inputSchema": {"type": "object"}}]}' }, 'far.json')
    vim.cmd('Tamis import mcp far.json')
  ]])
  local imported = wait('the import', "return vim.api.nvim_buf_get_name(0):find('tamis%-import') and table.concat(lines(), '\\n')")
  lua("vim.cmd('bwipeout!')")
  return { made = made, exported = exported, imported = imported }
end)

feature('held', function()
  open('asks.tam')
  lua("asked, pick = {}, { 'Always allow' } place('t:ask', 1) vim.cmd('Tamis run')")
  wait('the answer to hold', "local found = ask('approval/list', vim.empty_dict()) return found and #found.approvals > 0")
  lua("asked, pick = {}, { 't:ask' } vim.cmd('Tamis approvals')")
  wait('the menu', 'return #asked > 0')
  wait('the answer to be taken back', "local found = ask('approval/list', vim.empty_dict()) return found and #found.approvals == 0")
  return lua('return asked[1]')
end)

feature('syntax', function()
  return lua([[
    vim.cmd('syntax on')
    local found = {}
    for _, place_of in ipairs({ { 'calls.md', 't:echo' }, { 'asks.tam', 't:ask' }, { 'sleeps.vcp', 't:sleep' } }) do
      local name, text = place_of[1], place_of[2]
      vim.cmd.edit(name)
      vim.cmd('syntax on') -- reads the colours of a buffer anew
      vim.cmd('syntax sync fromstart')
      place(text, 1)
      local at = vim.api.nvim_win_get_cursor(0)
      found[name] = vim.fn.synIDattr(vim.fn.synID(at[1], at[2] + 1, 1), 'name')
    end
    return found
  ]])
end)

feature('health', function()
  lua("vim.cmd('checkhealth tamis')")
  local text = wait('the report', [[local text = table.concat(lines(), '\n') return text:find('log:', 1, true) and text]])
  lua("vim.cmd('bwipeout!')")
  return text
end)

feature('watched', function()
  open('calls.md')
  wait('the unknown tool', "return has('VA401')")
  lua([[
    local text = table.concat(vim.fn.readfile('t_echo/x.tool.json'), '\n')
    vim.fn.writefile(vim.split((text:gsub('t:echo', 't:later')), '\n'), 'later.tool.json')
  ]])
  wait('the tool to be known', "return not has('VA401')")
  lua("vim.fn.delete('later.tool.json')")
  return wait('the tool to be unknown again', "return has('VA401')")
end)

feature('renamed', function()
  lua("place('t:echo', 3) vim.lsp.buf.rename('t:said')")
  return wait(
    'the new name',
    [[
    local found = {}
    for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
      local text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n')
      local _, times = text:gsub('t:said', '')
      if times > 0 then found[vim.fs.basename(vim.api.nvim_buf_get_name(buffer))] = times end
    end
    return next(found) and found
  ]]
  )
end)

feature('completed', function()
  open('typed.md')
  keys('i<LT>ACTION>')
  local words = wait(
    'the menu',
    [[
    local found = vim.fn.complete_info({ 'items' }).items
    return vim.fn.pumvisible() == 1 and #found > 0 and vim.tbl_map(function(item) return item.abbr end, found)
  ]]
  )
  local at = 0
  for number, word in ipairs(words) do
    at = word:find('t:ask', 1, true) and number or at
  end
  keys(('<C-n>'):rep(at))
  local told = wait(
    'the words of the item',
    [[
    local info = vim.fn.complete_info({ 'items', 'selected' })
    local item = info.items[info.selected + 1]
    return item and item.info ~= '' and item.info or float()
  ]]
  )
  keys('<C-y>')
  wait('the snippet', "return table.concat(lines(), '\\n'):find('</t:ask>', 1, true) ~= nil and vim.fn.pumvisible() == 0")
  return {
    words = words,
    told = told,
    lines = lua('return lines()'),
    stops = lua('return vim.snippet.active()'),
  }
end)

feature('gone', function()
  keys('<C-\\><C-n>')
  lua("vim.cmd('edit! sleeps.vcp')")
  wait('the client', 'return client() ~= nil')
  lua("ended = nil place('TOOL_REQUEST') vim.cmd('Tamis run')")
  wait('the run', "return require('tamis').status():find('t:sleep', 1, true)")
  lua("notices = {} vim.notify = function(text) table.insert(notices, text) end for _, pid in ipairs(vim.api.nvim_get_proc_children(vim.fn.getpid())) do vim.uv.kill(pid, 9) end")
  wait('the end', "return ended and not require('tamis').status():find('t:sleep', 1, true)")
  return {
    running = lua("return require('tamis.run').running() ~= nil"),
    clock = lua("return table.concat(virtual('tamis_runs')):find('⏳', 1, true) ~= nil"),
    told = lua('return { notices[#notices] }'),
  }
end)

feature('quit', function()
  keys('<C-\\><C-n>')
  vim.rpcnotify(editor, 'nvim_command', 'qall!')
  return vim.fn.jobwait({ editor }, 300000)
end)

vim.fn.jobstop(editor)
finish(failed and 3 or 0)
