--- What running tools write, line by line: the last line for the block's virtual text, and all of it in a buffer that follows (`:Tamis output`).
--- A tool's words are never trusted: no character of them does anything, and what is kept is bounded.
local tamis = require('tamis')
local M = {}

local most_lines, most_width = 2000, 1000
local name = 'tamis://output'

---@class tamis.Stream
---@field title string what runs
---@field open table<string, string> by stream the line that has no end yet
---@field last string the last line that says something

---@type string[] lines that are not in the buffer yet
local waiting = {}
local buffer, planned

--- A line as it may be shown: as it would stand on a terminal after `\r`, without the sequences that steer one, and every character that acts or hides as an escape.
---@param text string
---@return string
function M.plain(text)
  text = text:gsub('\r+$', ''):match('[^\r]*$')
  text = text:gsub('\27%[[%d;:<=>?]*[ -/]*[@-~]', ''):gsub('\27%][^\7\27]*\7?', ''):gsub('\t', '    ')
  -- First: a text with a NUL is no string for Vim's functions.
  text = text:sub(1, most_width * 4):gsub('%c', function(char)
    return ('\\x%02x'):format(char:byte())
  end)
  text = vim.fn.strcharpart(text, 0, most_width)
  -- C1 controls, marks of direction, separators of lines, what nobody sees.
  return (
    text:gsub('[\194\226\239][\128-\191]+', function(bytes)
      local code = vim.fn.char2nr(bytes)
      local acts = (code >= 0x80 and code <= 0x9f)
        or (code >= 0x200b and code <= 0x200f)
        or (code >= 0x2028 and code <= 0x202e)
        or (code >= 0x2060 and code <= 0x206f)
        or code == 0xfeff
        or code == 0xad
      return acts and ('\\u%04x'):format(code) or nil
    end)
  )
end

local function at_end(window)
  return vim.api.nvim_win_get_cursor(window)[1] == vim.api.nvim_buf_line_count(buffer)
end

--- Puts what came into the buffer; who looks at its end goes on to do so.
local function flush()
  planned = nil
  if not (buffer and vim.api.nvim_buf_is_valid(buffer)) then
    buffer = vim.fn.bufadd(name)
    vim.fn.bufload(buffer)
    vim.bo[buffer].buftype, vim.bo[buffer].bufhidden, vim.bo[buffer].swapfile, vim.bo[buffer].buflisted = 'nofile', 'hide', false, false
    vim.bo[buffer].undolevels = -1
    vim.bo[buffer].filetype = 'tamisoutput'
    vim.bo[buffer].modifiable = false
    vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = buffer, nowait = true, desc = 'Close' })
    vim.keymap.set('n', '<C-c>', function()
      require('tamis.run').cancel()
    end, { buffer = buffer, nowait = true, desc = 'Cancel what runs' })
  end
  local follow = vim.tbl_filter(at_end, vim.fn.win_findbuf(buffer))
  local lines, count = waiting, vim.api.nvim_buf_line_count(buffer)
  waiting = {}
  local empty = count == 1 and vim.api.nvim_buf_get_lines(buffer, 0, 1, false)[1] == ''
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, empty and 0 or count, -1, false, lines)
  count = vim.api.nvim_buf_line_count(buffer)
  if count > most_lines then
    vim.api.nvim_buf_set_lines(buffer, 0, count - most_lines, false, {})
  end
  vim.bo[buffer].modifiable = false
  for _, window in ipairs(follow) do
    vim.api.nvim_win_set_cursor(window, { vim.api.nvim_buf_line_count(buffer), 0 })
  end
end

local function put(line)
  table.insert(waiting, line)
  if #waiting > 2 * most_lines then
    waiting = vim.list_slice(waiting, #waiting - most_lines + 1)
  end
  if not planned then
    planned = true
    vim.defer_fn(flush, 50)
  end
end

local function line(stream, text)
  local shown = M.plain(text)
  put(shown)
  if shown:find('%S') then
    stream.last = vim.trim(shown)
  end
end

---@param title string
---@return tamis.Stream
function M.stream(title)
  return { title = title, open = {}, last = '' }
end

--- Takes a piece of what a tool writes.
---@param stream tamis.Stream
---@param told { stream: string, text: string, truncated?: boolean, callId: string }
function M.take(stream, told)
  if not stream.begun then
    stream.begun = true
    put(('── %s ──'):format(M.plain(stream.title)))
  end
  local text = (stream.open[told.stream] or '') .. (told.text or '')
  local at = 1
  while true do
    local stop = text:find('\n', at, true)
    if not stop then
      break
    end
    line(stream, text:sub(at, stop - 1))
    at = stop + 1
  end
  local rest = text:sub(at)
  -- A line without end is shown as far as it is kept.
  stream.open[told.stream] = #rest > most_width * 4 and rest:sub(-most_width * 4) or rest
  local begun = M.plain(stream.open[told.stream])
  if begun:find('%S') then
    stream.last = vim.trim(begun)
  end
  if told.truncated then
    put('── the rest is not shown: the output is too long ──')
  end
end

--- Nothing more comes; `outcome` says what came of it.
---@param stream tamis.Stream
---@param outcome string
function M.close(stream, outcome)
  if not stream.begun then
    return
  end
  for _, open in pairs(stream.open) do
    if open ~= '' then
      line(stream, open)
    end
  end
  put(('── %s ──'):format(M.plain(outcome)))
end

--- Opens what was written in a window below, at its end, and leaves the cursor where it is.
function M.open()
  flush()
  local window = vim.fn.win_findbuf(buffer)[1]
  if not window then
    window =
      vim.api.nvim_open_win(buffer, false, { split = 'below', win = -1, height = math.max(3, math.min(12, math.floor(vim.o.lines / 3))) })
    vim.wo[window].wrap, vim.wo[window].number, vim.wo[window].spell, vim.wo[window].list = false, false, false, false
    vim.wo[window].winfixheight = true
    vim.wo[window].winbar = ' Tamis: output   q closes, <C-c> cancels'
  end
  vim.api.nvim_win_set_cursor(window, { vim.api.nvim_buf_line_count(buffer), 0 })
  tamis.event('TamisStatus')
  return window
end

return M
