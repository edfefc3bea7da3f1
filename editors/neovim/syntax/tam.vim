" Calls in tam; where the server is attached its semantic tokens say more.
if exists('b:current_syntax')
  finish
endif
syntax region tamisTamCall matchgroup=tamisMarker start=/<|\[\s*REQUEST_TOOL\s*\]|>/ end=/<|\[\s*END_TOOL\s*\]|>/ contains=tamisTamTool,tamisTamParameter,tamisTamValue keepend
syntax match tamisTamParameter /^\s*[[:alnum:]_.-]\+\ze\s*:\s*»»»/ contained
syntax region tamisTamValue matchgroup=tamisDelimiter start=/»»»/ end=/«««/ contained
syntax region tamisTamTool matchgroup=tamisParameter start=/^\s*command\(_\?\d*\)\s*:\s*»»»/ end=/«««/ contained oneline
highlight default link tamisTamParameter Identifier
highlight default link tamisTamValue String
highlight default link tamisTamTool Function
highlight default link tamisMarker Keyword
highlight default link tamisDelimiter Delimiter
highlight default link tamisParameter Identifier
let b:current_syntax = 'tam'
