package receiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// A sender needs no secret to declare a large body, so no more than this is
// allocated before bytes have come.
const firstBuffer = 64 << 10

// readBody reads the whole body, at most MaxBodyBytes of it, until from.readBy.
func (r *Receiver[Tx]) readBody(from *connection) (body []byte, failure *Error) {
	defer func() { from.arrived = failure == nil }()
	limit, req, deadline := r.cfg.MaxBodyBytes, from.req, from.readBy
	conn := http.NewResponseController(from.w)
	if req.Body == nil {
		return nil, nil
	}
	if req.Body != http.NoBody {
		if err := conn.SetReadDeadline(deadline); err != nil {
			r.noDeadline.Do(func() {
				r.log().WarnContext(req.Context(), "receiver: the read deadline cannot be set, so only the server's own timeouts end a body that stalls: a ResponseWriter in front of the receiver needs an Unwrap method", "error", err)
			})
		}
	}
	body, err := readAll(http.MaxBytesReader(from.w, req.Body, limit), req.ContentLength, deadline)
	switch {
	case err == nil && len(body) == 0 && req.ContentLength > 0, errors.Is(err, http.ErrBodyReadAfterClose):
		size := ""
		if req.ContentLength > 0 {
			size = fmt.Sprintf(" of %d bytes", req.ContentLength)
		}
		return nil, fail(ReasonBodyConsumed, fmt.Errorf("the body%s was read before it came here: put the receiver in front of whatever parses bodies", size))
	case err == nil:
		// The next request on this connection has its own time.
		_ = conn.SetReadDeadline(time.Time{})
		return body, nil
	case isOver(err, limit):
		return nil, tooLarge(limit)
	case isOver(err, 0):
		return nil, fail(ReasonTooLarge, fmt.Errorf("a bound in front of the receiver ended the body after %d bytes, which is less than MaxBodyBytes: %w", len(body), err))
	case timedOut(err):
		return nil, fail(ReasonSlow, fmt.Errorf("the body did not arrive in time: %d bytes came", len(body)))
	default:
		return nil, fail(ReasonTruncated, fmt.Errorf("the body ended after %d bytes: %w", len(body), err))
	}
}

// readAll looks at the clock between reads too, for connections that know no
// deadline.
func readAll(body io.Reader, declared int64, deadline time.Time) ([]byte, error) {
	size := int64(4 << 10)
	if declared >= 0 {
		// One byte more, so that the end is seen without growing.
		size = min(declared, firstBuffer-1) + 1
	}
	buf := make([]byte, 0, size)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, nil
		}
		if err == nil && !time.Now().Before(deadline) {
			err = os.ErrDeadlineExceeded
		}
		if err != nil {
			return buf, err
		}
	}
}

// isOver reports whether a body was longer than a bound of at least that many bytes.
func isOver(err error, bound int64) bool {
	var over *http.MaxBytesError
	return errors.As(err, &over) && over.Limit >= bound
}

func timedOut(err error) bool {
	var n net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &n) && n.Timeout()
}

// readDeadline is when the body must have arrived: at the request's deadline, or
// earlier if the server's own ReadTimeout, which setting a deadline replaces,
// would have ended first.
func readDeadline(ctx context.Context, start, deadline time.Time) time.Time {
	srv, ok := ctx.Value(http.ServerContextKey).(*http.Server)
	if !ok || srv.ReadTimeout <= 0 {
		return deadline
	}
	if own := start.Add(srv.ReadTimeout); own.Before(deadline) {
		return own
	}
	return deadline
}
