" Calls in Markdown: each protocol's own colours, contained in the text.
" A variable of the buffer would outlive `:syntax on`, which clears the colours and reads this again.
if execute('silent! syntax list tamisActionCall') =~# 'matchgroup'
  finish
endif
let s:main = get(b:, 'current_syntax', '')
for s:name in ['toolaction', 'tam', 'vcp']
  unlet! b:current_syntax
  execute 'runtime! syntax/' .. s:name .. '.vim'
endfor
let b:current_syntax = s:main
