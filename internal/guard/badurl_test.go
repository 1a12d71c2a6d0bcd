package guard_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/guard"
	"github.com/surehook/surehook/internal/ssrftest"
)

func TestBadURLs(t *testing.T) {
	t.Parallel()
	require.Len(t, ssrftest.URLs, 88)
	for _, tt := range ssrftest.URLs {
		t.Run(tt.URL, func(t *testing.T) {
			t.Parallel()
			_, err := guard.Policy{}.CheckURL(tt.URL)
			require.Error(t, err, "as it is, with http")

			https := tt.URL
			if len(https) > 5 && strings.EqualFold(https[:5], "http:") {
				https = "https" + https[4:]
			}
			u, err := guard.Policy{}.CheckURL(https)
			if tt.Problem == "" {
				require.NoError(t, err)
				require.Equal(t, https, u.String())
			} else {
				requireProblem(t, err, tt.Problem)
				require.Nil(t, u)
			}

			u, err = guard.Policy{AllowPrivateNetworks: true}.CheckURL(tt.URL)
			switch {
			case tt.Written != "":
				require.NoError(t, err)
				require.Equal(t, tt.Written, u.String())
			case tt.Private != "":
				requireProblem(t, err, tt.Private)
			default:
				requireProblem(t, err, tt.Problem)
			}

			for _, address := range tt.Dials {
				for _, network := range []string{"tcp4", "tcp6"} {
					err := guard.Policy{}.Control(t.Context(), network, address, nil)
					if address == ssrftest.Harmless {
						require.NoError(t, err)
					} else {
						require.ErrorIs(t, err, guard.ErrBlocked, address)
					}
				}
			}
		})
	}
}

func requireProblem(t *testing.T, err error, problem string) {
	t.Helper()
	var e *guard.Error
	require.ErrorAs(t, err, &e)
	require.Contains(t, e.Problem, problem)
	require.NotEmpty(t, e.Remedy)
	require.Equal(t, "guard: "+e.Problem+": "+e.Remedy, err.Error())
	require.False(t, errors.Is(err, guard.ErrBlocked), "what is wrong with a URL is no secret")
}
