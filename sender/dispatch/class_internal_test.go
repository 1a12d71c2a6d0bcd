package dispatch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/post"
)

func TestClassesArePosts(t *testing.T) {
	for of, want := range map[post.Class]sender.Class{
		post.ClassNone: sender.ClassNone, post.ClassDNS: sender.ClassDNS, post.ClassConnect: sender.ClassConnect, post.ClassTLS: sender.ClassTLS, post.ClassTimeout: sender.ClassTimeout,
		post.ClassReset: sender.ClassReset, post.ClassStatus: sender.ClassStatus, post.ClassRedirect: sender.ClassRedirect, post.ClassBlocked: sender.ClassBlocked, post.ClassProtocol: sender.ClassProtocol,
	} {
		require.Equal(t, want, sender.Class(of))
	}
}
