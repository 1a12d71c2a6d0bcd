package main_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// The operator lists its customers, the newest first, page by page, and finds them by how
// their names begin.
func TestListSubscribers(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-workers=false")
		var want []any
		for _, name := range []string{"Acme 1", "acme", "Acme 2", "100%", "A_c"} {
			want = append([]any{s.customer(name).id}, want...)
		}
		gone := s.customer("Acme, gone")
		s.remove(operatorToken, "/subscribers/"+gone.id).is(http.StatusNoContent)
		list := func(query string) (ids []any) {
			for cursor := ""; ; {
				r := s.get(operatorToken, "/subscribers?limit=2"+query+cursor)
				for _, one := range r.data() {
					ids = append(ids, one["id"])
					require.Equal(t, s.get(operatorToken, "/subscribers/"+one["id"].(string)).is(http.StatusOK), one, "as it is read alone")
				}
				next, more := r.body["next_cursor"].(string)
				if !more {
					return ids
				}
				cursor = "&cursor=" + url.QueryEscape(next)
			}
		}
		require.Equal(t, append(want, "sub_operator"), list(""))
		require.Equal(t, []any{want[2], want[4]}, list("&name=Acme"))
		require.Equal(t, []any{want[1]}, list("&name=100%25"))
		require.Equal(t, []any{want[0]}, list("&name=A_"))
		require.Nil(t, list("&name=nobody"))
		c := s.customer("c")
		s.get(c.token, "/subscribers").refused(http.StatusForbidden)
		s.get(operatorToken, "/subscribers?cursor=x").refused(http.StatusUnprocessableEntity, "query.cursor")
	})
}
