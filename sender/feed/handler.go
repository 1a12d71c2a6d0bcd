package feed

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
)

// ViewerFunc returns the id of the subscriber that a request reads as, or
// sender.Operator, who sees all events. The handler answers [ErrUnauthorized] with 401,
// [ErrForbidden] with 403, and every other error with 503, since a failed look-up says
// nothing about the caller. An empty id without an error is a mistake of the function;
// the answer is 500.
type ViewerFunc func(r *http.Request) (viewer string, err error)

// HandlerConfig adjusts a handler. A nil config and zero fields mean the defaults.
type HandlerConfig struct {
	// Logger gets the reason of each 5xx answer. Defaults to slog.Default(), looked
	// up at each use.
	Logger *slog.Logger
}

// NewHandler returns a handler that answers GET with a page of the feed as JSON. The
// parameters are after (a cursor, or now), limit (1 to 200, default 50) and wait (seconds,
// 0 to 30, default 0):
//
//	{"data":[{"id":"evt_…","type":"…","occurred_at":"…","object":{…},"version":7}, …],"next_cursor":"…"}
//
// Each event is written as the bytes of its body, the same that are posted to callback
// URLs. A redacted event has id, type, object, version, and "redacted":true.
// next_cursor is always there, and never null. Mounted under a pattern with {id}, the
// handler answers with that event alone.
//
// The body of a refusal is application/problem+json (RFC 9457). Its status is 401, 403 or
// 405, and 404 for an event that the viewer may not see. It is 410 for a cursor that has
// expired (see [ExpiredError]), with a type that ends in cursor-expired and a next_cursor
// to go on with. It is 422 for a parameter that is not valid, and 503 with Retry-After if
// the database is away.
//
// The handler extends the connection's write deadline by the time that an answer is
// held open. NewHandler reports all problems at once.
func NewHandler(reader *Reader, viewer ViewerFunc, cfg *HandlerConfig) (http.Handler, error) {
	var errs []error
	if reader == nil {
		errs = append(errs, errors.New("feed: NewHandler needs a Reader"))
	}
	if viewer == nil {
		errs = append(errs, errors.New("feed: NewHandler needs a ViewerFunc: without one everybody would see everything"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	h := &handler{reader: reader, viewer: viewer}
	if cfg != nil {
		h.logger = cfg.Logger
	}
	return h, nil
}

type handler struct {
	reader *Reader
	viewer ViewerFunc
	logger *slog.Logger
}

// writeTime bounds the writing of a page, after the wait.
const writeTime = 30 * time.Second

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		problem{Status: http.StatusMethodNotAllowed, Detail: "the feed is read with GET"}.write(w)
		return
	}
	viewer, err := h.viewer(r)
	if err == nil && viewer == "" {
		err = errNoViewer
	}
	if err != nil {
		h.refuse(r.Context(), w, viewerError{err})
		return
	}
	if id := r.PathValue("id"); id != "" {
		e, err := h.reader.Event(r.Context(), viewer, id)
		if err != nil {
			h.refuse(r.Context(), w, err)
			return
		}
		write(w, AppendEvent(nil, &e))
		return
	}
	q, err := parseQuery(r)
	if err != nil {
		h.refuse(r.Context(), w, err)
		return
	}
	q.Viewer = viewer
	// The server's own deadline may be shorter than the wait; where there is no
	// controller, there is none.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(q.Wait + writeTime))
	page, err := h.reader.Page(r.Context(), q)
	if errors.Is(err, sender.ErrNotFound) {
		err = ErrForbidden // a subscriber who is gone
	}
	if err != nil {
		h.refuse(r.Context(), w, err)
		return
	}
	write(w, page.AppendJSON(nil))
}

func write(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	// The client may be gone; it asks again with the cursor that it has.
	_, _ = w.Write(body)
}

// parseQuery refuses unknown parameters, and those that cannot be decoded, which URL.Query
// leaves out: a mistyped "after" must not start the client from the oldest event.
func parseQuery(r *http.Request) (q Query, err error) {
	var errs []error
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") {
		if _, err := url.ParseQuery(pair); err != nil {
			name, _, _ := strings.Cut(pair, "=")
			errs = append(errs, &InvalidError{name, errors.New("it cannot be decoded: percent-encode what is not a letter or a digit")})
		}
	}
	params := r.URL.Query()
	number := func(name string) int {
		n, err := strconv.Atoi(params.Get(name))
		if err != nil {
			errs = append(errs, &InvalidError{name, errors.New("it must be a number in digits")})
		}
		return n
	}
	for name, values := range params {
		if len(values) > 1 {
			errs = append(errs, &InvalidError{name, errors.New("it is given more than once")})
			continue
		}
		switch name {
		case "after":
			q.After = values[0]
		case "limit":
			if q.Limit = number(name); q.Limit == 0 {
				q.Limit = -1 // 0 is not the default here
			}
		case "wait":
			q.Wait = time.Duration(min(max(number(name), -1), int(MaxWait/time.Second)+1)) * time.Second
		default:
			errs = append(errs, &InvalidError{name, errors.New("there is no such parameter: after, limit and wait are known")})
		}
	}
	return q, errors.Join(errs...)
}

var errNoViewer = errors.New("feed: the ViewerFunc returned neither a viewer nor an error")

// viewerError is an error of the ViewerFunc, so that it is never taken for one of the
// feed's.
type viewerError struct{ error }

func (e viewerError) Unwrap() error { return e.error }

// refuse answers with a problem. The reason of a failure on this side goes to the log
// alone.
func (h *handler) refuse(ctx context.Context, w http.ResponseWriter, err error) {
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError && ctx.Err() == nil {
		log := h.logger
		if log == nil {
			log = slog.Default()
		}
		log.LogAttrs(ctx, slog.LevelError, "feed: request failed", slog.Int("status", p.Status), slog.Any("error", err))
	}
	p.write(w)
}
