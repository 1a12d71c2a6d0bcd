package dispatch

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// A port that is left out is the scheme's. What is for HTTPS alone never goes out in the clear.
func TestSameOrigin(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"https://a.example/hook", "https://A.example:443/else", true},
		{"http://a.example/hook", "http://a.example:80/else", true},
		{"https://a.example/hook", "https://a.example:80/hook", false},
		{"https://a.example/hook", "https://b.example/hook", false},
		{"https://a.example/hook", "http://a.example:443/hook", false},
	} {
		a, err := url.Parse(c.a)
		require.NoError(t, err)
		b, err := url.Parse(c.b)
		require.NoError(t, err)
		require.Equal(t, c.same, sameOrigin(a, b), "%s, %s", c.a, c.b)
		require.Equal(t, c.same, sameOrigin(b, a), "%s, %s", c.b, c.a)
	}
}
