package fault_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/sqlite"
)

// If the link to the endpoint is in trouble, attempts fail, or take long. When it is
// sound again everything is delivered.
func TestLinkToEndpoint(t *testing.T) {
	for what, class := range map[trouble]sender.Class{
		delays: sender.ClassNone, drips: sender.ClassTimeout, hangs: sender.ClassTimeout, cuts: sender.ClassReset, resets: sender.ClassReset,
	} {
		t.Run(string(what), func(t *testing.T) {
			t.Parallel()
			db := openSQLite(t, filepath.Join(t.TempDir(), "a.db"), nil)
			store, err := sqlite.New(db, nil)
			require.NoError(t, err)
			require.NoError(t, store.Migrate(t.Context()))
			s := newService(t, store, 400*time.Millisecond)
			server := httptest.NewServer(s.observed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })))
			l := newLink(t, server.Listener.Addr().String())
			t.Cleanup(server.Close)
			s.register(t, "http://"+l.addr+"/")
			s.dispatch(t)
			for range 5 { // over connections that are there when the trouble begins
				s.publish(t.Context())
			}
			s.settled(t, "before")
			l.set(what)
			for range 10 {
				s.publish(t.Context())
			}
			require.Eventually(t, func() bool { return s.failed(class) >= 3 }, soon, 5*time.Millisecond, "attempts end as they must")
			l.set(none)
			s.settled(t, string(what))
			s.check(t)
		})
	}
}
