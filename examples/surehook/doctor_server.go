package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// doctor checks a server from outside.
func (s *server) doctor(ctx context.Context, found *findings) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/healthz", nil)
	if err != nil {
		found.add("server", fail, err.Error(), "give its -server")
		return
	}
	before := time.Now()
	res, err := s.http.Do(req)
	if err != nil {
		found.add("server", fail, fmt.Sprintf("%s does not answer: %v", s.base, withoutURL(err)), "start it, or give another -server")
		return
	}
	_ = res.Body.Close()
	took := time.Since(before)
	switch res.StatusCode {
	case http.StatusServiceUnavailable:
		found.add("server", fail, "its database does not answer: "+res.Status, "see the server's log")
	case http.StatusOK:
		found.add("server", ok, s.base+" and its database answer", "")
	default:
		found.add("server", fail, s.base+" answers "+res.Status+": it is no reference server, or something before it does not let this through", "give another -server")
	}
	if at, err := http.ParseTime(res.Header.Get("Date")); err == nil {
		judgeClock(found, at.Add(time.Second/2).Sub(before.Add(took/2)), "the server's", time.Second+took) // whole seconds
	}
	switch _, err := s.deliveries(ctx, filter{}, "", 1); {
	case err == nil:
		found.add("token", ok, "the server takes it", "")
	case isNo(err):
		found.add("token", fail, err.Error(), "SUREHOOK_TOKEN or -token-file")
	default:
		found.add("token", warn, "not tried: "+err.Error(), "mend that first")
	}
	found.add("database", ok, "not looked at: surehook doctor -database checks it", "")
}
