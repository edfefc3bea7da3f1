"""The host's files: what is not shown cannot be read, and nothing that is shown can be changed (S1, S2)."""

from __future__ import annotations

from tests.sandbox.cases.base import attack

FILES = (
    attack("f01-own-script", "cannot(lambda: open(__file__,'a'))"),
    attack("f02-own-folder", "cannot(lambda: open('/tool/new','w'))"),
    attack("f03-chmod-own", "cannot(lambda: os.chmod(__file__, 0o777))"),
    attack("f04-utime-own", "cannot(lambda: os.utime(__file__))"),
    attack("f05-host-passwd", "held() if 'root:' not in open('/etc/passwd').read() else broken('host accounts')"),
    attack(
        "f06-shadow", "tries(lambda: open('/etc/shadow'), lambda: open('/etc/gshadow'), lambda: open('/etc/sudoers'))"
    ),
    attack("f07-home", "cannot(lambda: os.listdir('/root'))"),
    attack("f08-home-user", "cannot(lambda: os.listdir('/home'))"),
    attack("f09-var", "cannot(lambda: os.listdir('/var'))"),
    attack(
        "f10-run", "tries(lambda: os.listdir('/run'), lambda: os.listdir('/run/user'), lambda: os.listdir('/var/run'))"
    ),
    attack(
        "f11-sys",
        "tries(lambda: os.listdir('/sys'), lambda: os.listdir('/sys/fs/cgroup'), lambda: open('/sys/power/state','w'))",
    ),
    attack(
        "f12-usr-write",
        "tries(lambda: open('/usr/bin/x','w'), lambda: open('/usr/bin/env','r+b'), lambda: os.unlink('/usr/bin/env'), lambda: os.mkdir('/usr/x'))",
    ),
    attack(
        "f13-setuid-bit-chmod",
        "open('/tmp/x','w').close(); cannot(lambda: os.chmod('/tmp/x', 0o4755))",
        layer="seccomp",
    ),
    attack(
        "f14-setuid-bit-open",
        "cannot(lambda: os.close(os.open('/tmp/x', os.O_CREAT|os.O_WRONLY, 0o4755)))",
        layer="seccomp",
    ),
    attack("f15-setuid-bit-mknod", "cannot(lambda: os.mknod('/tmp/x', 0o104755))", layer="seccomp"),
    attack(
        "f16-device-node",
        "tries(lambda: os.mknod('/tmp/c', 0o20666, os.makedev(1, 1)), lambda: os.mknod('/tmp/b', 0o60666, os.makedev(8, 0)))",
    ),
    attack(
        "f17-descriptors",
        "held() if set(os.listdir('/proc/self/fd')) <= {'0','1','2','3'} else broken(os.listdir('/proc/self/fd'))",
    ),
    attack(
        "f18-pid-1-root",
        "tries(lambda: os.listdir('/proc/1/root/root'), lambda: os.listdir('/proc/1/cwd/root'), lambda: os.listdir('/proc/1/root/home'))",
    ),
    attack(
        "f19-oldroot",
        "held() if not any(map(os.path.lexists, ('/oldroot', '/newroot', '/stage', '/.old'))) else broken('old root')",
    ),
    attack(
        "f20-xattr", "open('/tmp/x','w').close(); cannot(lambda: os.setxattr('/tmp/x','user.a',b'b'))", layer="seccomp"
    ),
    attack("f21-remount", "refused(165, b'none', b'/tool', b'', 0x20 | 0x1000, b'')"),
    attack(
        "f22-block-device",
        "tries(*[lambda p=p: open(p,'rb') for p in ('/dev/vda','/dev/sda','/dev/nvme0n1','/dev/loop0','/dev/mem','/dev/port')])",
    ),
    attack("f23-kernel-log", "cannot(lambda: open('/dev/kmsg','rb'))"),
    attack("f24-host-mem", "cannot(lambda: open('/proc/kcore','rb').read(8))"),
    attack("f25-machine-id", "tries(lambda: open('/etc/machine-id'), lambda: open('/sys/class/dmi/id/product_uuid'))"),
    attack("f26-sysrq", "cannot(lambda: os.write(os.open('/proc/sysrq-trigger', os.O_WRONLY), b'?'))"),
    attack(
        "f27-parent-of-the-tool",
        "os.chdir('/tool/..'); held() if 'tool' in os.listdir('.') and not os.path.exists('root') and os.path.samefile('.', '/') else broken(os.listdir('.'))",
    ),
    attack("f28-above-the-root", "held() if os.path.samefile('/'.join(['..']*80) + '/', '/') else broken('above')"),
    attack(
        "f29-root-has-only-what-was-shown",
        "extra=set(os.listdir('/'))-{'bin','sbin','lib','lib32','lib64','libx32','usr','etc','proc','dev','tmp','tool','opt','run'}; held() if not extra else broken(extra)",
    ),
    attack(
        "f30-etc-has-only-what-was-shown",
        "extra=set(os.listdir('/etc'))-{'passwd','group','hosts','nsswitch.conf','ssl','ca-certificates','pki','ld.so.cache','alternatives','localtime','resolv.conf'}; held() if not extra else broken(extra)",
    ),
    attack(
        "f31-etc-not-writable",
        "tries(lambda: open('/etc/passwd','a'), lambda: open('/etc/hosts','w'), lambda: open('/etc/new','w'), lambda: os.unlink('/etc/passwd'), lambda: os.rename('/etc/passwd','/tmp/p'))",
    ),
    attack(
        "f32-hard-link-out-of-usr",
        "tries(lambda: os.link('/usr/bin/env','/tmp/env'), lambda: os.link('/etc/passwd','/tmp/p'), lambda: os.link(__file__,'/tmp/s'))",
    ),
    attack(
        "f33-mount-points-stay",
        "tries(lambda: os.rename('/tool','/tool2'), lambda: os.rmdir('/tool'), lambda: os.symlink('/etc','/tool/l'), lambda: os.rmdir('/tmp'), lambda: os.rename('/tmp','/x'), lambda: os.unlink('/dev/null'))",
    ),
    attack(
        "f34-magic-links",
        "tries(*[lambda p=p: os.listdir(p) for p in ('/proc/self/root/root', '/proc/self/task/1/root/home', '/proc/1/task/1/cwd/var', '/proc/thread-self/root/sys')])",
    ),
    attack(
        "f35-descriptors-of-pid-1",
        "fds=os.listdir('/proc/1/fd') if os.access('/proc/1/fd', os.R_OK) else []\nfor n in fds:\n  try: t=os.stat(f'/proc/1/fd/{n}')\n  except OSError: continue\n  if t.st_mode & 0o170000 == 0o040000: broken(os.readlink(f'/proc/1/fd/{n}'))\nheld()",
    ),
    attack(
        "f36-script-by-its-descriptor",
        "f=open(__file__); tries(lambda: open(f'/proc/self/fd/{f.fileno()}','w'), lambda: open(f'/dev/fd/{f.fileno()}','r+'), lambda: os.truncate(f.fileno(), 0), lambda: os.fchmod(f.fileno(), 0o777))",
    ),
    attack(
        "f37-interpreter-by-proc-exe",
        "tries(lambda: open('/proc/self/exe','r+b'), lambda: open('/proc/1/exe','r+b'), lambda: os.truncate('/proc/self/exe', 0))",
    ),
    attack(
        "f38-bubblewrap-by-proc-exe",
        "fd=os.open('/proc/1/exe', 0o10000000) if os.access('/proc/1/exe', os.F_OK) else -1\nif fd<0: held()\ncannot(lambda: open(f'/proc/self/fd/{fd}','r+b'))",
    ),
    attack(
        "f39-descriptor-of-a-folder",
        "d=os.open('/', os.O_RDONLY); tries(lambda: os.open('../root', 0, dir_fd=d), lambda: os.open('../../home', 0, dir_fd=d), lambda: os.mkdir('x', dir_fd=d))",
    ),
    attack(
        "f40-set-gid-folder",
        "os.mkdir('/tmp/d'); tries(lambda: os.chmod('/tmp/d', 0o2777), lambda: os.mkdir('/tmp/e', 0o2777) or (os.stat('/tmp/e').st_mode & 0o2000) or os.rmdir('/nothing'))",
    ),
    attack(
        "f41-setuid-fchmod",
        "f=open('/tmp/x','w'); tries(lambda: os.fchmod(f.fileno(), 0o4755), lambda: os.chmod('/tmp/x', 0o2755), lambda: os.chmod(f'/proc/self/fd/{f.fileno()}', 0o6755))",
        layer="seccomp",
    ),
    attack(
        "f42-setuid-without-a-name",
        "cannot(lambda: os.open('/tmp', os.O_TMPFILE|os.O_WRONLY, 0o4755))",
        layer="seccomp",
    ),
    attack(
        "f43-setuid-programs-gain-nothing",
        "import subprocess,shutil\np=shutil.which('su') or shutil.which('mount')\nif not p: held()\ns=subprocess.run([p,'-c','id'],capture_output=True,text=True,stdin=subprocess.DEVNULL); held() if 'uid=0' not in s.stdout else broken(s)",
    ),
    attack(
        "f44-owner",
        "open('/tmp/x','w').close(); tries(lambda: os.chown('/tmp/x', 0, 0), lambda: os.chown(__file__, 1000, 1000), lambda: os.chown('/usr/bin/env', 1000, 1000))",
    ),
    attack(
        "f45-file-capabilities",
        "open('/tmp/x','w').close(); cannot(lambda: os.setxattr('/tmp/x','security.capability', bytes(20)))",
    ),
    attack(
        "f46-immutable-flag",
        "import fcntl,array\nf=open('/tmp/x','w'); b=array.array('i',[0x10]); cannot(lambda: fcntl.ioctl(f, 0x40086602, b))",
    ),
    attack(
        "f47-usr-is-not-setuid-mounted",
        "rows=[l.split() for l in open('/proc/self/mountinfo')]; bad=[r[4] for r in rows if 'nosuid' not in r[5] or (r[4] not in ('/dev','/dev/null','/dev/zero','/dev/full','/dev/random','/dev/urandom','/dev/tty','/dev/pts','/dev/console') and 'nodev' not in r[5])]; held() if not bad else broken(bad)",
    ),
    attack(
        "f48-nothing-shared-back",
        "rows=[l for l in open('/proc/self/mountinfo') if ' shared:' in l]; held() if not rows else broken(rows)",
    ),
    attack(
        "f49-only-tmp-is-writable",
        "rows=[l.split() for l in open('/proc/self/mountinfo')]; w=sorted(r[4] for r in rows if r[5].startswith('rw')); bad=[p for p in w if p not in ('/tmp','/dev/shm','/proc') and not p.startswith('/dev/')]; held() if not bad else broken(bad)",
        layer="read-only-root",
    ),
    attack(
        "f50-dev-has-only-the-usual",
        "extra=set(os.listdir('/dev'))-{'null','zero','full','random','urandom','tty','stdin','stdout','stderr','fd','core','ptmx','pts','shm','console','mqueue'}; held() if not extra else broken(extra)",
    ),
    attack(
        "f51-fifo-in-place-of-a-file",
        "os.mkfifo('/tmp/f'); os.rename('/tmp/f','/tmp/g'); cannot(lambda: os.rename('/tmp/g', __file__))",
    ),
    attack(
        "f52-links-lead-nowhere",
        "for i,t in enumerate(('/root','/home','/oldroot','/proc/1/root/etc/shadow','../../../../etc/shadow')):\n  os.symlink(t, f'/tmp/l{i}')\n  try: d=os.listdir(f'/tmp/l{i}') if i<3 else open(f'/tmp/l{i}').read()\n  except OSError: continue\n  broken(d)\nheld()",
    ),
    attack(
        "f53-kernel-symbols-and-config",
        "s=open('/proc/kallsyms').read(4000) if os.access('/proc/kallsyms', os.R_OK) else ''; held() if not [l for l in s.splitlines() if l.split()[0].strip('0')] else broken(s[:100])",
    ),
    attack(
        "f54-swap-and-quota",
        "tries(lambda: open('/proc/sys/vm/drop_caches','w').write('1'), lambda: open('/proc/sys/kernel/hostname','w').write('x'), lambda: open('/proc/sys/fs/suid_dumpable','w').write('1'))",
    ),
    attack(
        "f55-proc-is-not-writable-for-others",
        "tries(lambda: os.write(os.open('/proc/1/oom_score_adj', 1), b'-1000'), lambda: os.write(os.open('/proc/1/attr/current', 1), b'x'), lambda: os.write(os.open('/proc/1/setgroups', 1), b'allow'))",
    ),
    attack(
        "f56-host-paths-of-descriptors",
        "import stat\nfor n in '012':\n  m=os.fstat(int(n)).st_mode\n  if not stat.S_ISFIFO(m): broken(oct(m))\nheld()",
    ),
    attack(
        "f57-inotify-on-the-host",
        "wd=libc.inotify_add_watch(libc.inotify_init(), b'/root', 0xfff); held() if wd<0 else broken('watching')",
    ),
    attack("f58-file-handles", "b=(ctypes.c_char*256)(); refused(304, -100, b, 0)"),
    attack("f59-tool-by-another-mount", "cannot(lambda: open('/proc/self/cwd/new','w'))"),
)
