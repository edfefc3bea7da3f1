--- Runs as a user sees them: virtual text while and after, a float with the result, a history, events.
local output = require('tamis.output')
local tamis = require('tamis')
local M = {}

local space = vim.api.nvim_create_namespace('tamis_runs')
local kept = 100

---@class tamis.Going
---@field buffer integer
---@field client vim.lsp.Client
---@field request integer
---@field mark integer
---@field since integer
---@field what string
---@field timer uv.uv_timer_t
---@field written tamis.Stream
---@field finish fun(fault: lsp.ResponseError?, run: table?)

---@type table<string, tamis.Going>
local going = {}
---@type table[] the newest first
M.history = {}
local number = 0

---@param text string
---@param group string
local function decorate(buffer, mark, text, group, stop)
  if not tamis.options.virtual_text or not vim.api.nvim_buf_is_valid(buffer) then
    return mark
  end
  local last = math.min(stop, vim.api.nvim_buf_line_count(buffer) - 1)
  return vim.api.nvim_buf_set_extmark(buffer, space, last, 0, {
    id = mark,
    virt_text = { { text, group } },
    virt_text_pos = 'eol',
    hl_mode = 'combine',
    invalidate = true,
    undo_restore = false,
  })
end

local function seconds(since)
  return ('%.1fs'):format((vim.uv.hrtime() - since) / 1e9)
end

--- A value as JSON; slashes stand as they are.
local function json(value)
  return (vim.json.encode(value):gsub('\\/', '/'))
end

local function shortened(text, most)
  return vim.fn.strchars(text) > most and vim.fn.strcharpart(text, 0, most - 1) .. '…' or text
end

--- A value as JSON on several lines, the names in order: Lua has none of its own.
local function pretty(value, indent)
  indent = indent or ''
  if type(value) ~= 'table' or vim.tbl_isempty(value) then
    return json(value)
  end
  local parts, inner = {}, indent .. '  '
  if vim.islist(value) then
    for _, item in ipairs(value) do
      table.insert(parts, inner .. pretty(item, inner))
    end
    return '[\n' .. table.concat(parts, ',\n') .. '\n' .. indent .. ']'
  end
  for _, name in ipairs(vim.fn.sort(vim.tbl_keys(value))) do
    table.insert(parts, inner .. json(name) .. ': ' .. pretty(value[name], inner))
  end
  return '{\n' .. table.concat(parts, ',\n') .. '\n' .. indent .. '}'
end

--- A value on one line as far as it is shown there.
local function brief(value)
  local text = json(value)
  if #text <= 4096 then
    text = pretty(value):gsub('([%[{])\n%s*', '%1'):gsub('\n%s*([%]}])', '%1'):gsub('\n%s*', ' ')
  end
  return shortened(text, 60)
end

--- The clock of a run, and the last line that its tool wrote.
---@param one tamis.Going
local function clock(one)
  return vim.trim(('⏳ %s %s'):format(seconds(one.since), shortened(one.written.last, 60)))
end

--- What runs, in a few words; nil where nothing does.
---@return string?
function M.running()
  local _, one = next(going)
  return one and ('⏳ %s %s'):format(one.what, seconds(one.since)) or nil
end

local groups = { success = 'TamisSuccess', denied = 'TamisDenied', timeout = 'TamisTimeout', cancelled = 'TamisDenied' }

--- Whether a run came out well: an example as it expects, which may be a failure, anything else with success.
local function is_good(run)
  if run.passed ~= nil then
    return run.passed
  end
  return run.status == 'success'
end

--- What came of a run, in the words of its line.
local function words(run)
  local first = run.results and run.results[1] or {}
  local took = ('%dms'):format(math.floor((run.durationMs or 0) + 0.5))
  if is_good(run) then
    local gave = first.output ~= nil and first.output ~= vim.NIL and brief(first.output) or ''
    return ('✔ %s %s'):format(took, gave), 'TamisSuccess'
  end
  local fault = type(first.error) == 'table' and first.error.type or run.status
  return ('✘ %s %s'):format(fault, took), groups[run.status] ~= 'TamisSuccess' and groups[run.status] or 'TamisError'
end

--- What is told of a run that ended, and its level: one line, so that no key has to be pressed to go on; what it left behind is told whole.
---@param run table
---@return string, integer
function M.told(run)
  local good, text = is_good(run), run.outcome
  if run.runs then -- those of `tamis.testExamples`
    good = run.failed == 0
  end
  for _, one in ipairs(run.runs or {}) do
    if one.passed == false then
      text = ('%s: %s'):format(text, one.outcome)
      break
    end
  end
  local lines = vim.tbl_map(output.plain, vim.list_extend({ (text:gsub('%s*\n%s*', ' ')) }, run.notes or {}))
  local line, room = 'Tamis: ' .. lines[1], math.max(20, vim.v.echospace)
  if #lines == 1 and vim.fn.strdisplaywidth(line) > room then
    line = vim.fn.strcharpart(line, 0, room)
    while vim.fn.strdisplaywidth(line) >= room do
      line = vim.fn.strcharpart(line, 0, vim.fn.strchars(line) - 1)
    end
    line = line .. '…'
  end
  lines[1] = line
  return table.concat(lines, '\n'), good and #lines == 1 and vim.log.levels.INFO or vim.log.levels.WARN
end

--- Forgets what is shown at a block as soon as the block is edited.
local watched = {}
local function watch(buffer)
  if watched[buffer] then
    return
  end
  watched[buffer] = vim.api.nvim_buf_attach(buffer, false, {
    on_lines = function(_, _, _, first, last)
      vim.schedule(function()
        if not vim.api.nvim_buf_is_valid(buffer) then
          return
        end
        for _, run in ipairs(M.history) do
          if run.shown and run.buffer == buffer then
            local at = vim.api.nvim_buf_get_extmark_by_id(buffer, space, run.shown, {})
            if at[1] and first <= at[1] and last > at[1] - run.lines then
              vim.api.nvim_buf_del_extmark(buffer, space, run.shown)
              run.shown = nil
            end
          end
        end
      end)
    end,
    on_detach = function()
      watched[buffer] = nil
    end,
  })
end

--- Runs a command of the server, and shows how it goes.
---@param command lsp.Command
---@param context { client_id: integer, bufnr: integer }
---@param done? fun(run: table?)
function M.execute(command, context, done)
  local client = assert(vim.lsp.get_client_by_id(context.client_id))
  local place = (command.arguments or {})[1] or {}
  local buffer = place.uri and vim.uri_to_bufnr(place.uri) or context.bufnr
  local range = place.range or { start = { line = 0 }, ['end'] = { line = 0 } }
  number = number + 1
  local token = ('tamis-nvim-%d'):format(number)
  local one = {
    buffer = buffer,
    client = client,
    since = vim.uv.hrtime(),
    what = 'tamis',
    timer = assert(vim.uv.new_timer()),
    written = output.stream('tamis'),
  }
  local function show()
    one.mark = decorate(buffer, one.mark, clock(one), 'TamisRunning', range['end'].line)
    tamis.event('TamisStatus')
  end
  going[token] = one
  tamis.event('TamisRunStart', { buffer = buffer, token = token })
  show()
  one.timer:start(
    100,
    100,
    vim.schedule_wrap(function()
      if going[token] then
        show()
      end
    end)
  )
  -- The outcome is told here: the server's message has several lines, after which a key would have to be pressed.
  local params = { command = command.command, arguments = { vim.tbl_extend('force', place, { show = false }) }, workDoneToken = token }
  one.finish = function(fault, run)
    if not going[token] then
      return
    end
    one.timer:stop()
    one.timer:close()
    going[token] = nil
    output.close(one.written, fault and fault.message or type(run) == 'table' and run.outcome or 'ended')
    if one.mark and vim.api.nvim_buf_is_valid(buffer) then
      pcall(vim.api.nvim_buf_del_extmark, buffer, space, one.mark)
    end
    if fault then
      vim.notify('Tamis: ' .. fault.message, vim.log.levels.WARN)
    elseif type(run) == 'table' and run.run then
      run.buffer, run.lines = buffer, math.max(0, range['end'].line - range.start.line)
      -- The hint of the server says the same where hints are shown.
      if not vim.lsp.inlay_hint.is_enabled({ bufnr = buffer }) then
        local text, group = words(run)
        run.shown = decorate(buffer, nil, text, group, range['end'].line)
        watch(buffer)
      end
      table.insert(M.history, 1, run)
      M.history[kept + 1] = nil
    end
    if not fault and type(run) == 'table' and type(run.outcome) == 'string' then
      vim.notify(M.told(run))
    end
    -- As Neovim does itself after a lens was run.
    if vim.api.nvim_buf_is_valid(buffer) and #vim.lsp.codelens.get(buffer) > 0 then
      vim.lsp.codelens.refresh({ bufnr = buffer })
    end
    -- Neovim takes hints for placed that a redraw met before they came (0.11): they are asked for once more.
    vim.defer_fn(function()
      if vim.api.nvim_buf_is_valid(buffer) and vim.lsp.inlay_hint.is_enabled({ bufnr = buffer }) then
        vim.lsp.inlay_hint.enable(false, { bufnr = buffer })
        vim.lsp.inlay_hint.enable(true, { bufnr = buffer })
      end
    end, 300)
    tamis.event('TamisRunEnd', { buffer = buffer, token = token, run = run })
    tamis.event('TamisStatus')
    if done then
      done(run)
    end
  end
  local sent, request = client:request('workspace/executeCommand', params, function(fault, run)
    one.finish(fault, run)
  end, buffer)
  one.request = request
  if not sent then
    one.finish({ code = 0, message = 'the server is gone' })
  end
end

-- A server that ended answers nothing any more.
vim.api.nvim_create_autocmd('LspDetach', {
  group = vim.api.nvim_create_augroup('tamis_runs', {}),
  callback = function(event)
    for _, one in pairs(going) do
      if one.client.id == event.data.client_id and one.buffer == event.buf then
        vim.schedule(function()
          one.finish({ code = 0, message = ('the server is gone; %s was ended with it'):format(one.what) })
        end)
      end
    end
  end,
})

---@type table<string, tamis.Stream> what is written by runs of others (tests, `:Tamis try`), by call
local others = {}

--- `tool/output`: what a tool writes while it runs.
---@param told { callId: string, stream: string, text: string, truncated?: boolean, workDoneToken?: string }
function M.output(told)
  local one = going[told.workDoneToken]
  if one then
    return output.take(one.written, told)
  end
  if not others[told.callId] then
    others = { [told.callId] = output.stream(told.callId) }
  end
  output.take(others[told.callId], told)
end

--- What a progress says of a run that is ours.
function M.progress(params)
  local one = going[params.token]
  local title = one and params.value and params.value.title
  if title then
    for _, begins in ipairs({ 'Running ', 'Dry run of ', 'Testing ', '正在运行 ', '试运行 ', '正在测试 ' }) do
      if vim.startswith(title, begins) then
        title = title:sub(#begins + 1)
        break
      end
    end
    one.what = title
    one.written.title = one.what
  end
end

--- Cancels what runs.
function M.cancel()
  local times = 0
  for _, one in pairs(going) do
    one.client:cancel_request(one.request)
    times = times + 1
  end
  return times
end

-- The float

local tabs = { 'Output', 'Logs', 'Permissions', 'Raw' }

local function clean(run)
  local shown = vim.deepcopy(run)
  shown.buffer, shown.lines, shown.shown = nil, nil, nil
  return shown
end

--- A page of a result, and its file type.
local function page_of(run, tab)
  local first = run.results and run.results[1] or {}
  if tab == 'Output' then
    local gave = first.output
    if type(first.error) == 'table' then
      gave = first.error
    end
    if gave == nil then
      return run.observation or '', 'text'
    end
    return pretty(gave), 'json'
  elseif tab == 'Logs' then
    local logs = table.concat(first.logs or {}, '\n')
    return logs ~= '' and logs or 'It wrote no log.', 'text'
  elseif tab == 'Permissions' then
    return pretty(first.permissions or vim.empty_dict()), 'json'
  end
  return pretty(clean(run)), 'json'
end

--- Opens a run in a float (the last one without it). `<Tab>` and 1 to 4 change the tab, `q` closes, `<CR>` goes to the call.
---@param run? table
function M.result(run)
  run = run or M.history[1]
  if not run then
    vim.notify('Tamis: nothing was run yet', vim.log.levels.INFO)
    return
  end
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.bo[buffer].bufhidden = 'wipe'
  local width = math.max(20, math.min(100, vim.o.columns - 8))
  local most = math.max(3, math.min(30, vim.o.lines - 8))
  local window = vim.api.nvim_open_win(buffer, true, {
    relative = 'editor',
    style = 'minimal',
    width = width,
    height = most,
    row = math.max(0, math.floor((vim.o.lines - most) / 2) - 1),
    col = math.max(0, math.floor((vim.o.columns - width) / 2)),
    border = 'rounded',
    title = (' %s '):format(shortened(output.plain(run.outcome or ''), width - 4)),
  })
  local current = 1
  local function show(tab)
    current = tab
    local bar = {}
    for index, name in ipairs(tabs) do
      table.insert(bar, ('%%#%s# %d %s '):format(index == tab and 'TamisTabSelected' or 'TamisTab', index, name))
    end
    vim.wo[window].winbar = table.concat(bar) .. '%#TamisTab#'
    local text, filetype = page_of(run, tabs[tab])
    vim.bo[buffer].modifiable = true
    vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(text, '\n'))
    vim.bo[buffer].modifiable = false
    vim.bo[buffer].filetype = filetype
    vim.wo[window].foldmethod = 'indent'
    vim.wo[window].foldlevel = 99
    -- As high as the page, with the bar; a page that is longer scrolls.
    vim.api.nvim_win_set_height(window, most)
    vim.api.nvim_win_set_height(window, math.max(3, math.min(most, vim.api.nvim_win_text_height(window, {}).all + 1)))
  end
  local function map(key, work, what)
    vim.keymap.set('n', key, work, { buffer = buffer, nowait = true, desc = what })
  end
  map('q', function()
    vim.api.nvim_win_close(window, true)
  end, 'Close')
  map('<Tab>', function()
    show(current % #tabs + 1)
  end, 'Next tab')
  for index in ipairs(tabs) do
    map(tostring(index), function()
      show(index)
    end, tabs[index])
  end
  map('<C-c>', M.cancel, 'Cancel what runs')
  map('<CR>', function()
    vim.api.nvim_win_close(window, true)
    vim.cmd.edit(vim.fn.fnameescape(vim.uri_to_fname(run.uri)))
    local failed = (run.trace or {})[1]
    if failed then
      vim.cmd.edit(vim.fn.fnameescape(vim.uri_to_fname(failed.uri)))
      vim.api.nvim_win_set_cursor(0, { failed.line + 1, 0 })
    end
  end, 'Go to the call, or the line that failed')
  show(1)
  return window
end

--- Chooses among what was run.
function M.choose()
  vim.ui.select(M.history, {
    prompt = 'What was run',
    format_item = function(run)
      return run.outcome
    end,
  }, function(run)
    if run then
      M.result(run)
    end
  end)
end

return M
