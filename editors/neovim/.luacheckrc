std = 'luajit'
globals = { 'vim' }
-- stylua decides how long a line is.
max_line_length = false
