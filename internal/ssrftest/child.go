package ssrftest

import (
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// childEnv tells a process of a test's own binary where its packets go.
const (
	childEnv = "SUREHOOK_TEST_SSRF"
	nowhere  = "nowhere"
	network  = "network"
)

// Child returns where packets go in a process that ByCLibrary or InOwnNetwork has started,
// and nil in every other one: there the test is over.
func Child(t *testing.T) *Outside {
	t.Helper()
	o := &Outside{}
	if strings.Contains(os.Getenv("GODEBUG"), "cgo") {
		o.Resolver = &net.Resolver{}
	}
	switch os.Getenv(childEnv) {
	case nowhere:
		o.Foreign = true
	case network:
		o.Real = true
		ownNetwork(t, o)
	default:
		return nil
	}
	return o
}

// ByCLibrary runs the test of a name in a process where the C library resolves names, and
// proxies are named in the environment. The test asks Child where its packets go.
func ByCLibrary(t *testing.T, test string) {
	t.Helper()
	requireCgo(t)
	output, err := newChild(t, test, nowhere, "cgo").CombinedOutput()
	checkChild(t, output, err, "cgo")
}

// newChild returns the command that runs one test. Each test has a process of its own,
// because a process chooses its resolver when it begins, and reads once which proxy the
// environment names.
func newChild(t *testing.T, test, where, resolver string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const elsewhere = "http://4.4.4.4:3128" // public, so that the guard would let it be called
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+test+"$", "-test.count=1", "-test.v")
	cmd.Env = append(os.Environ(), childEnv+"="+where, "GODEBUG=netdns="+resolver+"+2", "NO_PROXY=", "no_proxy=")
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		cmd.Env = append(cmd.Env, name+"="+elsewhere, strings.ToLower(name)+"="+elsewhere)
	}
	return cmd
}

// checkChild fails the test if the child's has failed or has done nothing, or if names were
// not resolved by resolver.
func checkChild(t *testing.T, output []byte, err error, resolver string) {
	t.Helper()
	switch text := string(output); {
	case err != nil:
		t.Fatalf("%v\n%s", err, text)
	case !strings.Contains(text, "    --- PASS: "):
		t.Fatalf("the child ran no subtest:\n%s", text)
	case strings.Contains(text, " = cgo") != (resolver == "cgo"):
		t.Fatalf("names were not resolved by the resolver %q:\n%s", resolver, text)
	}
}

func requireCgo(t *testing.T) {
	t.Helper()
	if !withCgo {
		skip(t, "cgo", "built without cgo: the C library's resolver is not there")
	}
}

// skip skips a test aloud for want of something, unless SUREHOOK_REQUIRE names it.
func skip(t *testing.T, name, why string) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("SUREHOOK_REQUIRE"), ","), name) {
		t.Fatal(why)
	}
	t.Skip(why)
}
