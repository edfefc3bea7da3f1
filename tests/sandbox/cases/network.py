"""No network but the run's own loopback, and no socket that leaves it some other way (item 11)."""

from __future__ import annotations

from tests.sandbox.cases.base import attack

NETWORK = (
    attack(
        "n01-connect-out",
        "import socket; tries(lambda: socket.create_connection(('1.1.1.1', 80), 2), lambda: socket.create_connection(('2606:4700:4700::1111', 80), 2))",
    ),
    attack("n02-no-names", "import socket; cannot(lambda: socket.getaddrinfo('example.org', 80))"),
    attack(
        "n03-only-loopback",
        "import socket; n=[x for _, x in socket.if_nameindex()]; held() if n == ['lo'] else broken(n)",
        layer="network",
    ),
    attack(
        "n04-raw-socket",
        "import socket; tries(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1), lambda: socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58), lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 255))",
    ),
    attack(
        "n05-packet-socket",
        "import socket; tries(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW), lambda: socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM))",
    ),
    attack("n06-vsock", "cannot(lambda: __import__('socket').socket(40, 1))", layer="seccomp"),
    attack("n07-unix-socket", "cannot(lambda: __import__('socket').socket(1, 1))", layer="seccomp"),
    attack("n08-alg-socket", "cannot(lambda: __import__('socket').socket(38, 5))"),
    attack("n09-host-metadata", "import socket; cannot(lambda: socket.create_connection(('169.254.169.254', 80), 2))"),
    attack(
        "n10-host-loopback",
        "import socket; cannot(lambda: socket.create_connection(('127.0.0.1', int(sys.argv[1])), 2))",
        layer="network",
        args=("@port",),
    ),
    attack(
        "n11-every-other-family",
        "import socket\nfor f in range(64):\n  for t in (1, 2, 3, 5):\n    if f in (2, 10, 16): continue\n    try: socket.socket(f, t)\n    except OSError: continue\n    broken((f, t))\nheld()",
        layer="seccomp",
    ),
    attack(
        "n12-abstract-socket-of-the-host",
        "import socket\ndef go():\n  s=socket.socket(socket.AF_UNIX); s.connect('\\0'+sys.argv[1])\ncannot(go)",
        args=("@abstract",),
        layer="seccomp+network",
    ),
    attack("n13-io-uring-socket", "refused(426, 0, 1, 0, 0, 0)"),
    attack(
        "n14-firewall-by-netlink",
        "import socket\n\ntry: s=socket.socket(16, 3, 12)\nexcept OSError: held()\ns.send(bytes.fromhex('14000000000a0500000000000000000000000000'))\nr=s.recv(4096); held() if int.from_bytes(r[16:20],'little',signed=True) < 0 else broken(r)",
        layer="",
    ),
    attack(
        "n15-move-or-make-interfaces",
        "import socket,struct\ns=socket.socket(16, 3, 0)\ns.send(struct.pack('=IHHIIBxHiII', 32, 16, 0x605, 1, 0, 0, 0, 0, 0, 0)); r=s.recv(4096); held() if int.from_bytes(r[16:20],'little',signed=True) < 0 else broken(r)",
    ),
    attack(
        "n16-interface-down",
        "import socket,fcntl,struct\ns=socket.socket(2,2); cannot(lambda: fcntl.ioctl(s, 0x8914, struct.pack('16sh14x', b'lo', 0)))",
    ),
    attack(
        "n17-private-addresses",
        "import socket; s=socket.socket(); s.settimeout(1); cannot(lambda: s.connect(('10.0.0.1', 22)))",
    ),
    attack(
        "n18-datagrams-out",
        "import socket; s=socket.socket(2,2); tries(lambda: s.sendto(b'x',('8.8.8.8',53)), lambda: s.sendto(b'x',('255.255.255.255',9)), lambda: s.sendto(b'x',('224.0.0.1',9)))",
    ),
    attack(
        "n19-tun",
        "tries(lambda: open('/dev/net/tun','r+b'), lambda: open('/dev/vhost-net','r+b'), lambda: open('/dev/vsock','r+b'), lambda: open('/dev/kvm','r+b'))",
    ),
    attack(
        "n20-sockets-passed-in",
        "import socket,stat\nfor n in os.listdir('/proc/self/fd'):\n  try: m=os.fstat(int(n)).st_mode\n  except OSError: continue\n  if stat.S_ISSOCK(m): broken(n)\nheld()",
    ),
    attack(
        "n21-no-proxy-without-hosts",
        "import socket; held() if not [k for k in os.environ if 'proxy' in k.lower()] else broken('proxy'); cannot(lambda: socket.create_connection(('127.0.0.1', 3128), 1))",
    ),
    attack(
        "n22-socketpair-of-other-kinds",
        "import socket\nfor f in (2, 10, 16, 30, 38, 40):\n  try: socket.socketpair(f, 1)\n  except OSError: continue\n  broken(f)\nheld()",
    ),
    attack(
        "n23-uevents-and-audit",
        "import socket\nfor p in (4, 6, 9, 12, 15, 16, 18, 21):\n  try: s=socket.socket(16, 3, p); s.bind((0, 1)); s.settimeout(0.1); s.recv(10)\n  except (OSError, TimeoutError): continue\n  broken(p)\nheld()",
    ),
    # trust 5: protocols that neither the proxy nor the tables of waiting bytes know
    attack(
        "n24-mptcp",
        "import socket\ntry: socket.socket(2, 1, 262)\nexcept OSError as e: held() if e.errno == errno.EPROTONOSUPPORT else broken(e)\nbroken('mptcp')",
    ),
    attack(
        "n25-other-protocols",
        "import socket\nfor f in (2, 10):\n  for t in range(16):\n    for p in (0, 1, 2, 6, 17, 33, 58, 132, 136, 255, 256, 257, 262):\n      if (t, p) in ((1, 0), (1, 6), (2, 0), (2, 17)): continue\n      for more in (0, 0x800, 0x80000):\n        try: socket.socket(f, t | more, p)\n        except OSError: continue\n        broken((f, t, p))\nheld()",
        layer="seccomp",
    ),
)
