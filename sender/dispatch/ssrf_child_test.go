package dispatch_test

import (
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// childEnv says, to a process of this test's own binary, what it is to do.
const childEnv = "SUREHOOK_TEST_SSRF"

// newChild returns the command that runs TestForbiddenInChild. Which resolver names
// are resolved by is decided when a process begins, and a proxy that the environment
// names is read once.
func newChild(t *testing.T, what, resolver string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	const elsewhere = "http://4.4.4.4:3128" // public, so that the guard would let it be called
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestForbiddenInChild$", "-test.count=1")
	cmd.Env = append(os.Environ(), childEnv+"="+what, "GODEBUG=netdns="+resolver+"+2", "NO_PROXY=", "no_proxy=")
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		cmd.Env = append(cmd.Env, name+"="+elsewhere, strings.ToLower(name)+"="+elsewhere)
	}
	return cmd
}

// requireResolver shows that a child used what it should have.
func requireResolver(t *testing.T, output, resolver string) {
	t.Helper()
	if resolver == "cgo" {
		require.Contains(t, output, " = cgo", "no name was resolved by the C library")
	} else {
		require.NotContains(t, output, " = cgo")
	}
}

// The C library's resolver reads shortened, octal and hexadecimal addresses, and
// proxies are named in the environment.
func TestNothingForbiddenIsCalledByTheCLibrary(t *testing.T) {
	t.Parallel()
	if !withCgo {
		required(t, "cgo", "built without cgo: the C library's resolver is not there")
	}
	output, err := newChild(t, "urls", "cgo").CombinedOutput()
	require.NoError(t, err, "%s", output)
	requireResolver(t, string(output), "cgo")
}

// TestForbiddenInChild is the test in the process of newChild.
func TestForbiddenInChild(t *testing.T) {
	o := &outside{}
	if strings.Contains(os.Getenv("GODEBUG"), "cgo") {
		o.resolver = &net.Resolver{}
	}
	switch os.Getenv(childEnv) {
	case "":
		return // the tests that start the child are those that count
	case "urls":
		o.foreign = true
	case "network":
		o.real = true
		ownNetwork(t, o)
	}
	t.Run("URL", o.testURLs)
	if o.real {
		t.Run("name", o.testNames)
		t.Run("rebinding", o.testRebinding)
	}
}

// required skips a test aloud for want of something, unless SUREHOOK_REQUIRE names it.
func required(t *testing.T, name, why string) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("SUREHOOK_REQUIRE"), ","), name) {
		t.Fatal(why)
	}
	t.Skip(why)
}
