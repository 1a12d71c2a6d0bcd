//go:build amd64 || arm64

package signing_test

import (
	"crypto/x509"
	"errors"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/paypal"
	"github.com/surehook/surehook/signing/sns"
	"github.com/surehook/surehook/signing/vendors"
)

const networkChild = "SUREHOOK_TEST_NO_NETWORK"

// No entry of package vendors uses the network when its scheme is made and when it verifies,
// good requests and bad ones. The kernel ends the process at the first socket.
func TestNoVendorUsesTheNetwork(t *testing.T) {
	switch os.Getenv(networkChild) {
	case "verify":
		forbidSockets(t)
		verifyByEveryVendor(t)
		return
	case "dial":
		forbidSockets(t)
		_, err := net.DialTimeout("tcp", "127.0.0.1:1", time.Second)
		t.Logf("still here: %v", err)
		return
	}
	for what, ends := range map[string]bool{"verify": false, "dial": true} {
		child := exec.Command(os.Args[0], "-test.run=^TestNoVendorUsesTheNetwork$", "-test.v") //nolint:gosec // this program
		child.Env = append(os.Environ(), networkChild+"="+what)
		out, err := child.CombinedOutput()
		var exit *exec.ExitError
		ended := errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGSYS
		if exit != nil && exit.ExitCode() == noSeccomp {
			const why = "this kernel lets no process give up its sockets"
			if slices.Contains(strings.Split(os.Getenv("SUREHOOK_REQUIRE"), ","), "seccomp") {
				t.Fatal(why)
			}
			t.Skip("NOT TESTED: " + why)
		}
		require.Equal(t, ends, ended, "%s: %v: %s", what, err, out)
		require.Equal(t, ends, err != nil, "%s: %v: %s", what, err, out)
	}
}

func verifyByEveryVendor(t *testing.T) {
	t.Helper()
	for _, r := range vendorRequests(t) {
		v, err := signing.NewVerifier(r.keys, &signing.VerifierConfig{Schemes: []signing.Scheme{r.scheme}, Deduplicated: true, UnsignedBody: true, Now: at(now)})
		require.NoError(t, err, r.vendor.Name)
		_, _, err = v.VerifyFacts(r.m)
		require.NoError(t, err, r.vendor.Name)
		bad := r.m
		bad.Body = append([]byte(" "), r.m.Body...)
		_, _, _ = v.VerifyFacts(bad)
		_ = v.Diagnose(bad)
	}
	// Amazon's certificates are fetched by Verify alone, and not where one is given.
	for _, certificate := range []*x509.Certificate{nil, {}} {
		s, err := sns.New([]string{"arn:aws:sns:eu-west-1:123456789012:orders"}, &sns.Config{Certificate: certificate})
		if certificate == nil {
			require.NoError(t, err)
			_, err = s.Verify(signing.Message{Body: []byte("{}")}, nil, now, tolerance)
		}
		require.Error(t, err)
	}
	for _, certificate := range []*x509.Certificate{nil, {}} { // and so are PayPal's
		s, err := paypal.New("8PT597110X687430LKGECATA", &paypal.Config{Certificate: certificate})
		if s != nil {
			_, err = s.Verify(signing.Message{Body: []byte("{}")}, nil, now, tolerance)
		}
		require.Error(t, err)
	}
	for _, v := range vendors.All() {
		_, _ = v.Scheme("") // also those that are made elsewhere
	}
}

// noSeccomp is the exit code of a child that cannot forbid itself anything.
const noSeccomp = 77

// forbidSockets has the kernel end this process when any of its threads makes a socket of IPv4
// or IPv6 (seccomp(2)).
func forbidSockets(t *testing.T) {
	t.Helper()
	const (
		prSetNoNewPrivs, setModeFilter, threadSync = 38, 1, 1
		load, equal, end                           = 0x20, 0x15, 0x06
		kill, allow                                = 0x80000000, 0x7fff0000
		number, firstArgument                      = 0, 16 // offsets in struct seccomp_data
	)
	seccomp := map[string]uintptr{"amd64": 317, "arm64": 277}[runtime.GOARCH]
	type instruction struct {
		code   uint16
		jt, jf uint8
		k      uint32
	}
	program := []instruction{
		{load, 0, 0, number},
		{equal, 0, 4, syscall.SYS_SOCKET},
		{load, 0, 0, firstArgument},
		{equal, 1, 0, syscall.AF_INET},
		{equal, 0, 1, syscall.AF_INET6},
		{end, 0, 0, kill},
		{end, 0, 0, allow},
	}
	filter := struct {
		length uint16
		first  *instruction
	}{uint16(len(program)), &program[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0)
	if errno == 0 {
		_, _, errno = syscall.RawSyscall(seccomp, setModeFilter, threadSync, uintptr(unsafe.Pointer(&filter)))
	}
	if errno != 0 {
		os.Exit(noSeccomp)
	}
}
