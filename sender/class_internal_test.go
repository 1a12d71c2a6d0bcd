package sender

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/internal/post"
)

func TestClassesArePosts(t *testing.T) {
	for of, want := range map[post.Class]Class{
		post.ClassNone: ClassNone, post.ClassDNS: ClassDNS, post.ClassConnect: ClassConnect, post.ClassTLS: ClassTLS, post.ClassTimeout: ClassTimeout,
		post.ClassReset: ClassReset, post.ClassStatus: ClassStatus, post.ClassRedirect: ClassRedirect, post.ClassBlocked: ClassBlocked, post.ClassProtocol: ClassProtocol,
	} {
		require.Equal(t, want, Class(of))
	}
}
