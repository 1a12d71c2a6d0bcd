package receiver

import (
	"context"
	"net/http"
	"time"

	"github.com/surehook/surehook/signing"
)

// Receive takes an event from bytes, through the same steps in the same order as
// [Receiver.Handler]. It is for functions-as-a-service, for HTTP servers other than
// net/http, and for queues that keep what was posted. m.Body must be the raw bytes as they
// were posted, without any base64 that a gateway has put around them. It must not be
// changed until Receive returns. m.Method must be the request's. Names in m.Header may be
// in any case.
//
// The error is always an [*Error]. [AnswerTo] makes the HTTP answer of the result and the
// error. As with Handler, the end of ctx does not end the work: Config.Timeout does.
func (r *Receiver[Tx]) Receive(ctx context.Context, m signing.Message, w Work[Tx]) (Result, error) {
	return r.receive(ctx, m, order[Tx]{work: w})
}

func (r *Receiver[Tx]) receive(ctx context.Context, m signing.Message, todo order[Tx]) (Result, error) {
	res, err := r.pass(ctx, incoming{
		method:   m.Method,
		url:      m.URL,
		header:   canonical(m.Header),
		size:     int64(len(m.Body)),
		deadline: time.Now().Add(r.cfg.Timeout),
		body:     m.Body,
	}, todo)
	if err != nil {
		return "", err
	}
	return res, nil
}

// canonical has every name as net/http writes it, so that names that differ only
// in case count as repeated.
func canonical(h http.Header) http.Header {
	for name := range h {
		if name != http.CanonicalHeaderKey(name) {
			out := make(http.Header, len(h))
			for name, values := range h {
				name = http.CanonicalHeaderKey(name)
				out[name] = append(out[name], values...)
			}
			return out
		}
	}
	return h
}
