package dispatch_test

import (
	"testing"

	"github.com/surehook/surehook/internal/ssrftest"
)

// The C library's resolver reads shortened, octal and hexadecimal addresses, and
// proxies are named in the environment.
func TestNothingForbiddenIsCalledByTheCLibrary(t *testing.T) {
	t.Parallel()
	ssrftest.ByCLibrary(t, "TestForbiddenInChild")
}

// The machine's own resolvers find nothing forbidden either, on a machine where every
// connection would arrive.
func TestNothingForbiddenIsCalledInANetworkOfItsOwn(t *testing.T) {
	t.Parallel()
	ssrftest.InOwnNetwork(t, "TestForbiddenInChild")
}

// TestForbiddenInChild is the test in the process that the tests above start.
func TestForbiddenInChild(t *testing.T) {
	o := outside{ssrftest.Child(t)}
	if o.Outside == nil {
		return
	}
	t.Run("URL", o.testURLs)
	if o.Real {
		t.Run("name", o.testNames)
		t.Run("rebinding", o.testRebinding)
	}
}
