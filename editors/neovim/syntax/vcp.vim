" Calls in vcp; where the server is attached its semantic tokens say more.
if exists('b:current_syntax')
  finish
endif
syntax region tamisVcpCall matchgroup=tamisMarker start=/<<<\[TOOL_REQUEST\]>>>/ end=/<<<\[END_TOOL_REQUEST\]>>>/ contains=tamisVcpTool,tamisVcpParameter,tamisVcpValue keepend
syntax match tamisVcpParameter /^\s*[[:alnum:]_.-]\+\ze\s*:\s*「始/ contained
syntax region tamisVcpValue matchgroup=tamisDelimiter start=/「始\(exp\|ESCAPE\)\?」/ end=/「末\(exp\|ESCAPE\)\?」/ contained
syntax region tamisVcpTool matchgroup=tamisParameter start=/^\s*tool_name\s*:\s*「始」/ end=/「末」/ contained oneline
highlight default link tamisVcpParameter Identifier
highlight default link tamisVcpValue String
highlight default link tamisVcpTool Function
highlight default link tamisMarker Keyword
highlight default link tamisDelimiter Delimiter
highlight default link tamisParameter Identifier
let b:current_syntax = 'vcp'
