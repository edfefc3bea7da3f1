" Calls in Markdown: each protocol's own colours, contained in the text.
if exists('b:tamis_calls')
  finish
endif
let b:tamis_calls = 1
let s:main = get(b:, 'current_syntax', '')
for s:name in ['toolaction', 'tam', 'vcp']
  unlet! b:current_syntax
  execute 'runtime! syntax/' .. s:name .. '.vim'
endfor
let b:current_syntax = s:main
