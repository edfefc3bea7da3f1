" Calls in toolaction; where the server is attached its semantic tokens say more.
if exists('b:current_syntax')
  finish
endif
syntax region tamisActionCall matchgroup=tamisMarker start=/<ACTION\(\s[^>]*\)\?>/ end=/<\/ACTION\s*>/ contains=tamisActionTool,tamisActionTag,tamisActionData,tamisActionComment keepend
syntax match tamisActionTag /<\/\?[[:alnum:]_.-]\+[^>]*>/ contained
syntax match tamisActionTool /<\/\?[[:alnum:]_.-]\+:[[:alnum:]_.-]\+[^>]*>/ contained
syntax region tamisActionData matchgroup=tamisDelimiter start=/<!\[CDATA\[/ end=/\]\]>/ contained
syntax region tamisActionComment start=/<!--/ end=/-->/ contained
highlight default link tamisActionTag Identifier
highlight default link tamisActionTool Function
highlight default link tamisActionData String
highlight default link tamisActionComment Comment
highlight default link tamisMarker Keyword
highlight default link tamisDelimiter Delimiter
highlight default link tamisParameter Identifier
let b:current_syntax = 'toolaction'
