package console

import (
	"context"
	"embed"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
)

// Registry changes subscriptions. A *sender.Registry of any transaction type is one.
type Registry interface {
	Subscription(ctx context.Context, id string) (sender.Subscription, error)
	Pause(ctx context.Context, id string) error
	Resume(ctx context.Context, id string, take sender.Resume) error
	Disable(ctx context.Context, id, reason string) error
	SendTest(ctx context.Context, id string) (sender.Ref, error)
}

// Backend has the parts of a sender that a console works on, all on one store. No field
// may be nil.
type Backend struct {
	Registry Registry
	History  *history.History
	Replays  *replay.Replays
}

// Authorize tells who sent a request, in words for the log. It returns false if the
// visitor may not use the console; then it has answered the request itself: with 401 or
// 403, or with a redirect to the page for signing in. Many goroutines call it at once.
type Authorize func(w http.ResponseWriter, r *http.Request) (who string, ok bool)

// Config adjusts a Console. A nil config and zero fields mean the defaults.
type Config struct {
	// Name is the heading of every page. The default is "Surehook".
	Name string

	// SignOut is the target of the button for signing out: a path, or a URL of the
	// same origin, which gets a POST. Empty: there is no button.
	SignOut string

	// Timeout bounds how long a request may take. The default is 10 s.
	Timeout time.Duration

	// Now is the clock that ages are counted by. The default is time.Now.
	Now func() time.Time

	// Logger gets every change and every failure. The default is slog.Default().
	Logger *slog.Logger
}

// Console is an http.Handler, safe for concurrent use.
type Console struct {
	Backend
	authorize Authorize
	cfg       Config
	pages     map[string]*template.Template
	mux       *http.ServeMux
	guarded   http.Handler
}

const (
	defaultTimeout = 10 * time.Second
	maxForm        = 64 << 10 // bytes
	styleSheet     = "/style.css"
)

//go:embed pages/*.html style.css
var files embed.FS

// New returns a Console.
func New(b Backend, authorize Authorize, cfg *Config) (*Console, error) {
	c := &Console{Backend: b, authorize: authorize, mux: http.NewServeMux()}
	if cfg != nil {
		c.cfg = *cfg
	}
	var errs []error
	missing := func(is bool, what string) {
		if is {
			errs = append(errs, errors.New("sender/console: New needs "+what))
		}
	}
	missing(b.Registry == nil, "a Registry")
	missing(b.History == nil, "a History")
	missing(b.Replays == nil, "Replays")
	missing(authorize == nil, "an Authorize function: without one, anybody could see and do everything")
	if c.cfg.Timeout < 0 {
		errs = append(errs, errors.New("sender/console: Config.Timeout is negative: it must be above 0, or 0 for the default"))
	}
	var err error
	if c.pages, err = parsePages(); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	c.setDefaults()
	c.routes()
	c.guarded = http.NewCrossOriginProtection().Handler(http.HandlerFunc(c.serve))
	return c, nil
}

func (c *Console) setDefaults() {
	if c.cfg.Name == "" {
		c.cfg.Name = "Surehook"
	}
	if c.cfg.Timeout == 0 {
		c.cfg.Timeout = defaultTimeout
	}
	if c.cfg.Now == nil {
		c.cfg.Now = time.Now
	}
	if c.cfg.Logger == nil {
		c.cfg.Logger = slog.Default()
	}
}

func (c *Console) routes() {
	c.page("/{$}", "health", c.health)
	c.page("/subscriptions", "subscriptions", c.subscriptions)
	c.page("/subscriptions/{id}", "subscription", c.subscription)
	c.action("/subscriptions/{id}/pause", "pause", c.pause)
	c.action("/subscriptions/{id}/resume", "resume", c.resume)
	c.action("/subscriptions/{id}/disable", "disable", c.disable)
	c.action("/subscriptions/{id}/test", "send a test event", c.sendTest)
	c.page("/events", "events", c.events)
	c.page("/events/{id}", "event", c.event)
	c.page("/deliveries", "deliveries", c.deliveries)
	c.page("/deliveries/{id}", "delivery", c.delivery)
	c.action("/deliveries/{id}/redeliver", "redeliver", c.redeliver)
	c.page("/replays", "replays", c.replays)
	c.page("/replays/new", "newreplay", c.newReplay)
	c.action("/replays", "create a replay", c.createReplay)
	c.page("/replays/{id}", "replay", c.replay)
	c.action("/replays/{id}/pause", "pause", c.turnReplay(c.Replays.Pause, "paused"))
	c.action("/replays/{id}/continue", "continue", c.turnReplay(c.Replays.Continue, "continued"))
	c.action("/replays/{id}/cancel", "cancel", c.turnReplay(c.Replays.Cancel, "cancelled"))
	c.page("/notices", "notices", c.notices)
	c.action("/notices/{id}/acknowledge", "acknowledge", c.acknowledge)
}

// ServeHTTP implements http.Handler. It takes the path as relative to the console's
// root: strip the prefix before.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, "/") { // the prefix was stripped with its slash
		r = r.Clone(r.Context())
		r.URL.Path, r.URL.RawPath = "/"+r.URL.Path, ""
	}
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	if r.URL.Path == styleSheet && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		h.Set("Cache-Control", "max-age=3600")
		http.ServeFileFS(w, r, files, "style.css")
		return
	}
	h.Set("Cache-Control", "no-store")
	c.guarded.ServeHTTP(w, r)
}

type whoKey struct{}

// serve answers a request that Authorize has let in.
func (c *Console) serve(w http.ResponseWriter, r *http.Request) {
	who, ok := c.authorize(w, r)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithValue(r.Context(), whoKey{}, who), c.cfg.Timeout)
	defer cancel()
	r = r.WithContext(ctx)
	// A redirect of the mux would lead out of the prefix.
	if _, pattern := c.mux.Handler(r); pattern == "" || r.URL.Path != path.Clean(r.URL.Path) {
		c.fail(w, r, errNoPage)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	c.mux.ServeHTTP(w, r)
}
