package ssrftest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// InOwnNetwork runs the test of a name in a network of its own, in which all addresses are
// this machine and every connection arrives. It runs it once with Go's resolver, and once
// with the C library's, which read the machine's files and ask a name server by datagrams.
// The code is that of production. The test asks Child where its packets go.
func InOwnNetwork(t *testing.T, test string) {
	t.Helper()
	for _, resolver := range []string{"go", "cgo"} {
		t.Run(resolver, func(t *testing.T) {
			if resolver == "cgo" {
				requireCgo(t)
			}
			cmd := newChild(t, test, network, resolver)
			cmd.SysProcAttr = &syscall.SysProcAttr{
				Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
				UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
			}
			output, err := cmd.CombinedOutput()
			if cmd.Process == nil || strings.Contains(string(output), noNetwork) {
				skip(t, "namespaces", fmt.Sprintf("a process cannot have a network of its own here: %v %s", err, output))
			}
			checkChild(t, output, err, resolver)
		})
	}
}

const noNetwork = "no network of its own: "

// ownNetwork makes all addresses those of this process's own network, listens on
// them, and gives it a name server and the files that say so.
func ownNetwork(t *testing.T, o *Outside) {
	t.Helper()
	for _, err := range []error{linkUp(1), allLocal(syscall.AF_INET), allLocal(syscall.AF_INET6)} {
		if err != nil {
			t.Fatal(noNetwork, err)
		}
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Fatal(noNetwork, err)
	}
	for path, text := range map[string]string{
		"/etc/resolv.conf":   "nameserver 127.0.0.1\nsearch corp.internal\noptions timeout:1 attempts:1\n",
		"/etc/hosts":         "127.0.0.1 localhost\n::1 localhost\n10.9.9.9 intranet.example.com\n",
		"/etc/nsswitch.conf": "hosts: files dns\n",
	} {
		own := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(own, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount(own, path, "", syscall.MS_BIND, ""); err != nil && path != "/etc/nsswitch.conf" {
			t.Fatal(noNetwork, err)
		}
	}
	NewZone().Listen(t, "127.0.0.1:53")
	for _, port := range []int{22, 80, 443, 3128} {
		l, err := net.Listen("tcp", ":"+strconv.Itoa(port)) //nolint:noctx // it waits for nothing
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{
			Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }),
			ConnState: func(c net.Conn, state http.ConnState) {
				if state == http.StateNew {
					at := c.LocalAddr().(*net.TCPAddr).AddrPort()
					o.Note(netip.AddrPortFrom(at.Addr().Unmap(), at.Port()).String())
				}
			},
		}
		go func() { _ = server.Serve(l) }()
		t.Cleanup(func() { _ = server.Close() })
	}
	// The tests rely on it that packets arrive wherever they are sent to.
	for _, address := range []string{"10.0.0.1:80", "169.254.169.254:80", Google + ":443", "127.0.0.1:22", "[fd00:ec2::254]:80", "[" + cloudflare + "]:443"} {
		if err := call(address); err != nil {
			t.Fatal(err)
		}
		if called := o.Take(); !slices.Equal(called, []string{address}) {
			t.Fatalf("%s was called, and %v noted", address, called)
		}
	}
}

// call makes a request, and returns when it was answered: so somebody has noted it.
func call(address string) error {
	conn, err := net.Dial("tcp", address) //nolint:noctx // in this network it is there or not
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte("GET / HTTP/1.0\r\n\r\n")); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

// linkUp is ip link set (rtnetlink(7)).
func linkUp(index int32) error {
	body := make([]byte, syscall.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(body[4:], uint32(index))
	binary.NativeEndian.PutUint32(body[8:], syscall.IFF_UP)
	binary.NativeEndian.PutUint32(body[12:], syscall.IFF_UP)
	return netlink(syscall.RTM_NEWLINK, 0, body)
}

// allLocal is ip route add local default dev lo.
func allLocal(family byte) error {
	body := []byte{family, 0, 0, 0, syscall.RT_TABLE_LOCAL, syscall.RTPROT_BOOT, syscall.RT_SCOPE_HOST, syscall.RTN_LOCAL, 0, 0, 0, 0}
	body = binary.NativeEndian.AppendUint16(body, 8)
	body = binary.NativeEndian.AppendUint16(body, syscall.RTA_OIF)
	body = binary.NativeEndian.AppendUint32(body, 1)
	return netlink(syscall.RTM_NEWROUTE, syscall.NLM_F_CREATE, body)
}

// netlink sends one request and waits for its end.
func netlink(kind, flags uint16, body []byte) error {
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(fd) }()
	var b bytes.Buffer
	for _, v := range []any{uint32(syscall.SizeofNlMsghdr + len(body)), kind, flags | syscall.NLM_F_REQUEST | syscall.NLM_F_ACK, uint32(1), uint32(0), body} {
		if err := binary.Write(&b, binary.NativeEndian, v); err != nil {
			return err
		}
	}
	if err := syscall.Sendto(fd, b.Bytes(), 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := syscall.Recvfrom(fd, answer, 0)
	if err != nil {
		return err
	}
	messages, err := syscall.ParseNetlinkMessage(answer[:n])
	if err != nil || len(messages) == 0 || len(messages[0].Data) < 4 {
		return fmt.Errorf("an answer by netlink that is none: %w", err)
	}
	if code := int32(binary.NativeEndian.Uint32(messages[0].Data)); code != 0 {
		return syscall.Errno(-code)
	}
	return nil
}
