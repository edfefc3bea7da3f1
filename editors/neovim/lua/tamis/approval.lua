--- What `tool/requestApproval` asks, through `vim.ui.select` and `vim.ui.input`: whether a call may run, or what the MCP server of a tool wants to know.
--- Leaving a menu is no refusal. Nothing that a server says is run; an address is opened only when a person chose to.
local M = {}

local MOST_TYPED, MOST_NUMBER = 4000, 2 ^ 53
local CANCELLED = { outcome = 'cancelled' }
local settled = {}

--- `tool/approvalResolved`: what is still asked is not sent any more.
function M.resolved(_, told)
  settled[told.approvalId] = true
end

--- Begins something that calls back, and waits for it; only in a coroutine, as the handlers of requests are.
local function wait(begin)
  local co, answered = assert(coroutine.running()), false
  begin(function(value)
    if answered then
      return
    end
    answered = true
    -- Not before the yield, also where a menu answers at once.
    vim.schedule(function()
      coroutine.resume(co, value)
    end)
  end)
  return coroutine.yield()
end

--- Somebody else's words on one line.
local function words(text)
  local line = (text or ''):gsub('[%c%s]+', ' ')
  return line
end

local function choose(items, kind, prompt)
  return wait(function(done)
    vim.ui.select(items, {
      kind = kind,
      prompt = prompt,
      format_item = function(item)
        return words(item.label)
      end,
    }, done)
  end)
end

local function details(request)
  local text = vim.json.encode({
    tool = request.tool,
    version = request.version,
    risk = request.risk,
    args = request.args,
    permissions = request.permissions,
  })
  vim.notify(text, vim.log.levels.INFO)
end

--- The question in words; a server's own words are told apart from those of Tamis.
local function prompt_of(request)
  local asked = request.elicitation
  if asked then
    local field = asked.field and (' It asks for: %s.'):format(asked.field) or ''
    return words(
      ("The MCP server '%s' asks (its words) while %s runs: “%s”%s"):format(asked.server, request.tool, asked.message, field)
    )
  end
  return ('Run %s? Risk: %s. %s'):format(request.tool, request.risk, request.argsPreview)
end

--- The answer of a kind, with the values of a form.
local function reply(request, kind, content)
  for _, option in ipairs(request.options) do
    if option.kind == kind then
      return { outcome = 'selected', optionId = option.optionId, content = content }
    end
  end
  return CANCELLED
end

local function bare(number)
  return number % 1 == 0 and ('%d'):format(number) or ('%.15g'):format(number)
end

local function wrong_size(size, least, most, what)
  if size < (least or 0) then
    return ('it has at least %d %s'):format(least, what)
  end
  return most and size > most and ('it has at most %d %s'):format(most, what) or nil
end

local function wrong_number(field, value)
  if not value then
    return 'it is a number'
  elseif math.abs(value) > MOST_NUMBER then
    return ('it is a number up to %d'):format(MOST_NUMBER)
  elseif field.type == 'integer' and value % 1 ~= 0 then
    return 'it is a whole number'
  elseif field.minimum and value < field.minimum then
    return 'it is at least ' .. bare(field.minimum)
  end
  return field.maximum and value > field.maximum and 'it is at most ' .. bare(field.maximum) or nil
end

local function is_day(text)
  local year, month, day = text:match('^(%d%d%d%d)%-(%d%d)%-(%d%d)$')
  year, month, day = tonumber(year), tonumber(month), tonumber(day)
  if not year or year < 1 or month < 1 or month > 12 then
    return false
  end
  local leap = year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
  local days = ({ 31, leap and 29 or 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 })[month]
  return day >= 1 and day <= days
end

local formats = {
  email = {
    'it is an email address',
    function(text)
      return text:find('^[^@%s]+@[^@%s]+$') ~= nil
    end,
  },
  uri = {
    'it is an address such as https://example.com/',
    function(text)
      local rest = text:match('^%a[%w.+-]*:(%S+)$')
      return rest ~= nil and not rest:find('^[?#]') and not rest:find('^//$') and not rest:find('^//[?#]')
    end,
  },
  date = { 'it is a date such as 2026-07-28', is_day },
  ['date-time'] = {
    'it is a time such as 2026-07-28T09:30:00Z',
    function(text)
      local day, hours, minutes, seconds, zone = text:match('^([%d-]+)[Tt](%d%d):(%d%d):(%d%d)%.?%d*(.+)$')
      if not day or not is_day(day) or tonumber(hours) > 23 or tonumber(minutes) > 59 or tonumber(seconds) > 59 then
        return false
      end
      return zone:find('^[Zz]$') ~= nil or zone:find('^[+-]%d%d:%d%d$') ~= nil
    end,
  },
}

local function wrong_text(field, text)
  local wrong = wrong_size(vim.fn.strchars(text), field.minLength, math.min(field.maxLength or MOST_TYPED, MOST_TYPED), 'characters')
  local format = formats[field.format]
  return wrong or (format and not format[2](text) and format[1]) or nil
end

--- What was typed as a field's value, and what is wrong with it in the server's words, which looks again.
function M.read(field, text)
  local digits = vim.trim(text)
  if text == '' or (field.type ~= 'string' and digits == '') then
    return nil, field.required and 'an answer is needed' or nil
  elseif field.type == 'string' then
    return text, wrong_text(field, text)
  end
  local number = digits:gsub('^%+', ''):find('^%-?%.?%d[%d.]*[eE]?[+-]?%d*$') and tonumber(digits) or nil
  return number, wrong_number(field, number)
end

--- What there is to choose from, the server's suggestion first; nil for a field that is typed into.
local function choices_of(field)
  if field.type == 'boolean' then
    return { { label = 'yes', value = true }, { label = 'no', value = false } }
  end
  return field.options and vim.tbl_map(function(option)
    return { label = option.title, value = option.value }
  end, field.options)
end

local function has(value, choice)
  if type(value) == 'table' then
    return vim.list_contains(value, choice.value)
  end
  return value == choice.value
end

--- A value in the words of its field.
local function told(field, value)
  local choices = choices_of(field)
  if value == nil then
    return '(left out)'
  elseif not choices then
    return type(value) == 'number' and bare(value) or words(value)
  end
  local labels = {}
  for _, choice in ipairs(choices) do
    if has(value, choice) then
      table.insert(labels, words(choice.label))
    end
  end
  return table.concat(labels, ', ')
end

--- One of the choices, as `{ value }`; empty where the field is left out, nil where the question is.
local function one_of(field, prompt, choices, given)
  local items, first = {}, {}
  for _, choice in ipairs(choices) do
    local suggested = given ~= nil and has(given, choice)
    table.insert(suggested and first or items, suggested and { label = choice.label .. ' (suggested)', value = choice.value } or choice)
  end
  vim.list_extend(first, items)
  if not field.required then
    table.insert(first, { label = 'Leave out' })
  end
  local item = choose(first, 'tamis_question', prompt)
  return item and { item.value }
end

--- Several of the choices: each press turns one on or off.
local function some_of(field, prompt, choices, given)
  local on = {}
  for _, choice in ipairs(choices) do
    on[choice.value] = has(given or {}, choice)
  end
  local wrong
  while true do
    local items = { { label = 'Done', done = true } }
    for _, choice in ipairs(choices) do
      table.insert(items, { label = (on[choice.value] and '[x] ' or '[ ] ') .. choice.label, value = choice.value })
    end
    local item = choose(items, 'tamis_question', prompt .. (wrong and (' (that does not fit: %s)'):format(wrong) or ''))
    if not item then
      return nil
    elseif not item.done then
      on[item.value] = not on[item.value]
    else
      local value = {}
      for _, choice in ipairs(choices) do
        if on[choice.value] then
          table.insert(value, choice.value)
        end
      end
      if #value == 0 and not field.required then
        return {}
      end
      wrong = wrong_size(#value, field.minItems, field.maxItems, 'choices')
      if not wrong then
        return { value }
      end
    end
  end
end

local function typed(field, prompt, given)
  local default = type(given) == 'number' and bare(given) or given or ''
  -- The editor takes it as if it was typed: no key is in it.
  default = default:find('%c') and '' or default
  local wrong
  while true do
    local text = wait(function(done)
      local shown = prompt .. (wrong and (' (that does not fit: %s)'):format(wrong) or '') .. ': '
      vim.ui.input({ prompt = shown, default = default }, done)
    end)
    if text == nil then
      return nil
    end
    local value
    value, wrong = M.read(field, text)
    if not wrong then
      return { value }
    end
    default = text
  end
end

--- One field: its value in a table, which is empty where it is left out; nil where the question is left.
local function ask(field, step, given)
  local about = { words(field.title) .. (field.required and '' or ' (may be left out)') }
  for _, text in ipairs({ field.description or '', field.error and 'the answer before does not fit: ' .. field.error or '' }) do
    if text ~= '' then
      table.insert(about, words(text))
    end
  end
  local prompt, choices = ('%s %s'):format(step, table.concat(about, ' - ')), choices_of(field)
  if not choices then
    return typed(field, prompt, given)
  end
  return (field.type == 'array' and some_of or one_of)(field, prompt, choices, given)
end

--- A form: field by field, and sent when a person chose so with the whole answer in sight.
local function fill(request, form)
  local server, values, whole, at = words(request.elicitation.server), {}, false, 1
  for number, field in ipairs(form) do
    values[number] = { field.default }
  end
  while not settled[request.approvalId] do
    if at <= #form then
      local found = ask(form[at], ('[%d/%d]'):format(at, #form), values[at][1])
      if not found then
        return CANCELLED
      end
      values[at] = found
      at = whole and #form + 1 or at + 1
    else
      whole = true
      local items = { { label = ("Send to '%s'"):format(server), send = true } }
      for number, field in ipairs(form) do
        table.insert(items, { label = ('Change %s: %s'):format(words(field.title), told(field, values[number][1])), at = number })
      end
      table.insert(items, { label = 'Decline to answer', decline = true })
      local item = choose(items, 'tamis_question', ("The answer to the MCP server '%s'"):format(server))
      if not item then
        return CANCELLED
      elseif item.decline then
        return reply(request, 'reject_once')
      elseif item.send then
        local content = vim.empty_dict()
        for number, field in ipairs(form) do
          content[field.name] = values[number][1]
        end
        return reply(request, 'allow_once', content)
      end
      at = item.at
    end
  end
  return CANCELLED
end

--- An address as it is, if it is one that may be opened: http or https, ASCII, and no user's name before the host that is shown.
function M.openable(url, host)
  local authority = url:match('^[Hh][Tt][Tt][Pp][Ss]?://([^/?#]+)')
  return not url:find('[^!-~]') and not url:find('\\', 1, true) and authority ~= nil and authority:lower() == host:lower()
end

local function open(request, address)
  if not M.openable(address.url, address.host) then
    vim.notify('Tamis: an MCP server named an address that is not opened', vim.log.levels.WARN)
    return reply(request, 'reject_once')
  end
  local items = { { label = 'Open ' .. address.host, open = true }, { label = 'Decline to answer' } }
  local prompt = ('%s It wants you to open an address of the host %s: %s'):format(prompt_of(request), address.host, address.url)
  local item = choose(items, 'tamis_question', prompt)
  if not item or settled[request.approvalId] then
    return CANCELLED
  elseif not item.open then
    return reply(request, 'reject_once')
  end
  local _, fault = vim.ui.open(address.url)
  if fault then
    vim.notify('Tamis: ' .. fault, vim.log.levels.WARN)
    return CANCELLED
  end
  return reply(request, 'allow_once')
end

--- The answer to a question; only in a coroutine, as the handlers of requests are.
function M.handler(_, request)
  local asked = request.elicitation
  if asked and asked.url then
    return open(request, asked.url)
  end
  local items = vim.list_slice(request.options)
  if not asked then
    table.insert(items, { label = 'Details', details = true })
  end
  while true do
    local option = choose(items, asked and 'tamis_question' or 'tamis_approval', prompt_of(request))
    if not option then
      return CANCELLED
    elseif option.details then
      details(request)
    elseif asked and asked.form and option.kind == 'allow_once' then
      return fill(request, asked.form)
    else
      return { outcome = 'selected', optionId = option.optionId }
    end
  end
end

return M
