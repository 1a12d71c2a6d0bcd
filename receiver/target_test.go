package receiver_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/receiver"
)

// A request that was made by http.NewRequest has no RequestURI, as one has that a server
// gives. Tests of one's own and adapters make requests like that.
func TestRequestOfAClient(t *testing.T) {
	all := newTenants()
	d := newDoor(t, all.lookup, nil, &receiver.Config{Handshake: &receiver.Handshake{EchoChallenge: true}})
	handler := d.rcv.Handler(receiver.State(func(context.Context, *memory.Tx, receiver.Event) error { return nil }))
	m := all.set(t, "acme").Request(newEvent(1)).Message()
	serve := func(method, target string, header http.Header, body []byte) string {
		req, err := http.NewRequestWithContext(t.Context(), method, target, bytes.NewReader(body))
		require.NoError(t, err)
		req.Header = header
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, req)
		return answer.Body.String()
	}
	require.Equal(t, `{"result":"applied"}`, serve(m.Method, "http://shop.example/hooks/acme?x=1", m.Header, m.Body), "by the name in its path")
	require.Equal(t, "1234", serve(http.MethodGet, "http://shop.example/hooks/acme?challenge=1234", http.Header{}, nil), "by its query")
}
