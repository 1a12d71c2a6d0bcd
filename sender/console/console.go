package console

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/catalogue"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/look"
	"github.com/surehook/surehook/sender/jobs"
	"github.com/surehook/surehook/sender/replay"
)

// Registry reads and changes subscriptions. A *sender.Registry of any transaction type is
// one.
type Registry interface {
	Subscriber(ctx context.Context, id string) (sender.Subscriber, error)
	Secrets(ctx context.Context, subscriber string) ([]sender.SubscriberSecret, error)
	Subscription(ctx context.Context, id string) (sender.Subscription, error)
	Pause(ctx context.Context, id string) error
	Resume(ctx context.Context, id string, take sender.Resume) error
	Disable(ctx context.Context, id, reason string) error
	SendTest(ctx context.Context, id string) (sender.Ref, error)
}

// Jobs are those of package jobs. A *jobs.Jobs of any transaction type is one.
type Jobs interface {
	List(ctx context.Context, q jobs.Query) ([]jobs.Job, string, error)
	Get(ctx context.Context, k jobs.Key) (jobs.Job, error)
	Cancel(ctx context.Context, k jobs.Key) (jobs.Job, error)
}

// Customers tells what the program knows of subscribers: the library knows their ids
// alone. Many goroutines call it at once. Its errors are shown to nobody, and logged.
type Customers interface {
	// NameOf returns the names of subscribers by their ids. It gets at most a few hundred
	// ids. One that has no name is left out.
	NameOf(ctx context.Context, ids []string) (map[string]string, error)

	// Customers lists customers and returns the cursor of the page that follows, ""
	// after the last one. It reads a bounded number of rows.
	Customers(ctx context.Context, q CustomerQuery) (page []Customer, next string, err error)

	// Customer returns one, or an error that matches sender.ErrNotFound.
	Customer(ctx context.Context, id string) (Customer, error)
}

// CustomerQuery selects customers.
type CustomerQuery struct {
	Text   string // part of the name or the id, in whatever case; "": all
	Cursor string // of the page before
	Limit  int
}

// Customer is a subscriber as the program knows it.
type Customer struct {
	ID         string // the subscriber's
	Name       string
	CreatedAt  time.Time
	Attributes []Attribute // shown in this order: the first 100, and of each the first 1,024 bytes
}

// Attribute is something that the program keeps about a customer.
type Attribute struct{ Name, Value string }

// Backend has the parts of a sender that a console works on, all on one store. The first
// three may not be nil. The others are optional: without one, its pages are not there and
// the navigation leaves them out.
type Backend struct {
	Registry Registry
	History  *history.History
	Replays  *replay.Replays

	// Customers gives subscribers their names, wherever one is shown, and a list.
	Customers Customers

	// Jobs are the jobs that the program runs.
	Jobs Jobs
}

// Authorize tells who sent a request, in words for the log. It returns false if the
// visitor may not use the console. Then it has answered the request itself, with 401 or
// 403, or with a redirect to the page for signing in. Many goroutines call it at once.
type Authorize func(w http.ResponseWriter, r *http.Request) (who string, ok bool)

// Config adjusts a Console. A nil config and zero fields mean the defaults.
type Config struct {
	// Name stands above the navigation and in every title. The default is "Surehook".
	Name string

	// Place stands below the name: "production", for instance. Empty: nothing does.
	Place string

	// SignOut is the target of the button for signing out: a path, or a URL of the same
	// origin, which gets a POST. Empty: there is no button. Answer with a page, or with a
	// redirect within the origin. Browsers do not follow one to another origin, such as an
	// identity provider's, because the policy of the pages has form-action 'self'. The
	// visitor would stay on a page that looks signed in.
	SignOut string

	// Portal returns a link that opens a subscriber's own pages for a visitor, as
	// portal.Portal.Link does; by is who Authorize says the visitor is. A customer's page
	// then leads there. It is called when somebody follows that, so that links may end
	// soon. An error that matches sender.ErrNotFound says that there are none. Nil: no page
	// leads there.
	Portal func(ctx context.Context, subscriber, by string) (link string, err error)

	// FirstSteps are shown on the first page until something has been sent.
	FirstSteps FirstSteps

	// Catalogue has the service's event types: the pages describe them, and propose them
	// where one is typed. Nil: they do not.
	Catalogue *catalogue.Catalogue

	// DisableAfter is dispatch.Policy.DisableAfter: how long an endpoint may fail until
	// its subscription is disabled. Zero: the pages do not say when that will be.
	DisableAfter time.Duration

	// Policy tells what is done about the failures of a subscription with some settings: the
	// Dispatcher's PolicyOf. Pages then say when each subscription is tried and disabled, by
	// its own policy if it has one, and DisableAfter is not looked at. Nil: they say of a
	// policy only what its settings ask for.
	Policy func(sender.Settings) sender.EffectivePolicy

	// Refresh is how often open pages load what has changed, by their script. The
	// default is 15 s; negative: never.
	Refresh time.Duration

	// Timeout bounds how long a request may take. The default is 10 s.
	Timeout time.Duration

	// Now is the clock that ages are counted by. The default is time.Now.
	Now func() time.Time

	// Logger gets every change and every failure. The default is slog.Default().
	Logger *slog.Logger
}

// FirstSteps are commands or code to try a new sender with. An empty one is replaced by
// code that uses the library.
type FirstSteps struct {
	Customer string // makes a subscriber
	Endpoint string // makes a subscription
	Event    string // publishes an event
}

// Console is an http.Handler, safe for concurrent use. It counts what a replay would send for
// two requests at a time: the others wait.
type Console struct {
	Backend
	authorize Authorize
	cfg       Config
	mux       *http.ServeMux
	guarded   http.Handler
	counting  chan struct{} // has one element for each count that is made: see counted
}

const (
	defaultTimeout = 10 * time.Second
	defaultRefresh = 15 * time.Second
	maxForm        = 64 << 10 // bytes
)

//go:embed pages/*.html
var files embed.FS

// New returns a Console.
func New(b Backend, authorize Authorize, cfg *Config) (*Console, error) {
	c := &Console{Backend: b, authorize: authorize, mux: http.NewServeMux(), counting: make(chan struct{}, countsAtOnce)}
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
		errs = append(errs, fmt.Errorf("sender/console: Config.Timeout is %v: it must be above 0, or 0 for the default", c.cfg.Timeout))
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
	if c.cfg.Refresh == 0 {
		c.cfg.Refresh = defaultRefresh
	}
	if c.cfg.Now == nil {
		c.cfg.Now = time.Now
	}
	if c.cfg.Logger == nil {
		c.cfg.Logger = slog.Default()
	}
}

func (c *Console) routes() {
	c.page("/{$}", "overview", c.overview)
	c.page("/search", "search", c.search)
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
	c.action("/deliveries/redeliver", "redeliver several", c.redeliverSeveral)
	c.action("/deliveries/{id}/redeliver", "redeliver", c.redeliver)
	c.action("/deliveries/{id}/pass-over", "pass over", c.passOver)
	c.page("/dead-letters", "deadletters", c.deadLetters)
	c.page("/replays", "replays", c.replays)
	c.page("/replays/new", "newreplay", c.newReplay)
	c.action("/replays", "create a replay", c.createReplay)
	c.page("/replays/{id}", "replay", c.replay)
	c.action("/replays/{id}/pause", "pause", c.turnReplay(c.Replays.Pause, "paused"))
	c.action("/replays/{id}/continue", "continue", c.turnReplay(c.Replays.Continue, "continued"))
	c.action("/replays/{id}/cancel", "cancel", c.turnReplay(c.Replays.Cancel, "cancelled"))
	c.page("/notices", "notices", c.notices)
	c.action("/notices/acknowledge", "acknowledge groups", c.acknowledgeGroups)
	c.action("/notices/{id}/acknowledge", "acknowledge", c.acknowledge)
	c.page("/customers/{id}", "customer", c.customer)
	if c.Customers != nil {
		c.page("/customers", "customers", c.customers)
	}
	if c.cfg.Portal != nil {
		c.mux.HandleFunc("GET /customers/{id}/portal", c.openPortal)
	}
	if c.Jobs != nil {
		c.page("/jobs", "jobs", c.jobs)
		c.page("/jobs/{id}", "job", c.job)
		c.action("/jobs/{id}/cancel", "cancel a job", c.cancelJob)
	}
}

// ServeHTTP implements http.Handler. It takes the path as relative to the console's
// root: strip the prefix before.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, "/") { // the prefix was stripped with its slash
		r = r.Clone(r.Context())
		r.URL.Path, r.URL.RawPath = "/"+r.URL.Path, ""
	}
	h := w.Header()
	h.Set("Content-Security-Policy", look.CSP+"; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	if look.Serve(w, r) {
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
	if err := storable(r.URL.Query()); err != nil {
		c.fail(w, r, err)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	c.mux.ServeHTTP(w, r)
}
