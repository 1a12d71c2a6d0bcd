package http1_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Beside net/http's own transport, tuned, in the same run:
//
//	go test -bench . ./sender/internal/http1
func BenchmarkPost(b *testing.B) {
	body := []byte(strings.Repeat("x", 1<<10))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	theirs := &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}
	defer theirs.CloseIdleConnections()
	ours := newClient(b)
	ours.MaxIdle = 256
	for name, c := range map[string]http.RoundTripper{"http1": ours, "net-http": theirs} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(32)
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					if _, _, err := post(b.Context(), c, server.URL, body); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
