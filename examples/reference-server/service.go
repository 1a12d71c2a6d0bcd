package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/catalogue"
	"github.com/surehook/surehook/sender/challenge"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/jobs"
	"github.com/surehook/surehook/sender/replay"
)

// service is the library, put together, and what the handlers work with.
type service struct {
	options   options
	log       *slog.Logger
	db        *database
	metrics   *metrics
	answers   *answers
	rates     *rates  // requests of subscribers
	guesses   *rates  // at the operator's token
	sending   *places // exports
	counting  *counting
	asking    asking
	readiness *readiness

	keys      []sender.SealingKey // the newest first
	rewrapped bool                // rewrap has found nothing to do
	types     *catalogue.Catalogue

	operatorHash string // of the operator's token
	sessions     *sessions

	challenger *challenge.Challenger // nil: nobody is challenged
	registry   *sender.Registry[*sql.Tx]
	publisher  *sender.Publisher[*sql.Tx]
	history    *history.History
	replays    *replay.Replays
	feed       *feed.Reader
	dispatcher *dispatch.Dispatcher
	jobs       *jobs.Jobs[*sql.Tx]
}

func newService(ctx context.Context, o options, log *slog.Logger) (_ *service, err error) {
	given, err := sealingKeys(o)
	if err != nil {
		return nil, err
	}
	keys, err := sender.NewKeys(given[0], given[1:]...)
	if err != nil {
		return nil, err
	}
	db, err := openDatabase(ctx, o, log)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			db.close()
		}
	}()
	s := &service{options: o, log: log, db: db, keys: given,
		rates: newRates(float64(o.limits.requests), float64(o.limits.requests)), guesses: newRates(guessesAtOnce, guessesASecond),
		sending: newPlaces(exportsOfOne, exportsSent), counting: newCounting(), asking: newAsking(db.connections), readiness: &readiness{}}
	if s.answers, err = newAnswers(db, given); err != nil {
		return nil, err
	}
	if o.timeout < maxTimeout/2 {
		log.Warn("-timeout is short: endpoints that take longer are taken for failing, although they may have applied the event", "timeout", o.timeout)
	}
	if err := s.assemble(keys); err != nil {
		return nil, err
	}
	if err := db.migrate(ctx); err != nil {
		return nil, fmt.Errorf("migrating: %w", err)
	}
	// Without the key that its secrets were sealed with, the service must not start.
	if err := s.checkKeys(ctx); err != nil {
		return nil, err
	}
	if err := s.seedOperator(ctx); err != nil {
		return nil, err
	}
	token := o.operatorToken
	if token == "" && !o.restored { // which serves nobody
		token = newToken()
		// This is the one place where a token is shown: nobody could know it otherwise.
		log.Info("operator token, generated for this start: set -operator-token to choose one", "operator_token", token)
	}
	s.operatorHash = hashToken(token)
	s.sessions, err = newSessions(db, given, s.operatorHash)
	return s, err
}

// assemble makes the library's parts. It touches no database.
func (s *service) assemble(keys *sender.Keys) error {
	network := sender.Network{AllowPrivateNetworks: s.options.allowPrivate}
	var errs []error
	types, err := eventTypes()
	if err != nil {
		return err
	}
	s.types = types
	config := sender.RegistryConfig{Network: network, Retention: s.options.retention, PayloadVersion: types.Newest(), Facts: types.Facts(), OwnPolicies: s.options.policy.Own}
	if s.options.challenge {
		s.challenger, err = challenge.New(&challenge.Config{Network: network, Timeout: s.options.timeout, UserAgent: userAgent()})
		errs = append(errs, err)
		config.Challenger = s.challenger
	}
	s.registry, err = sender.NewRegistry[*sql.Tx](s.db.sender, keys, &config)
	errs = append(errs, err)
	if s.metrics, err = newMetrics(s.db.sql); err != nil {
		return err
	}
	s.publisher, err = sender.NewPublisher[*sql.Tx](s.db.sender, &sender.PublisherConfig{Hooks: s.metrics.sender.PublishHooks(), PayloadVersion: types.PayloadVersion})
	errs = append(errs, err)
	s.history, err = history.New(s.db.sender, &history.Config{Retention: s.options.retention, Convert: types.Convert})
	errs = append(errs, err)
	s.replays, err = replay.New(s.db.sender, &replay.Config{Retention: s.options.retention})
	errs = append(errs, err)
	s.feed, err = feed.NewReader(s.db.sender, nil)
	errs = append(errs, err)
	if s.registry != nil && s.publisher != nil {
		errs = append(errs, s.assembleJobs())
	}
	if s.history != nil {
		errs = append(errs, s.metrics.total(s.history, s.log))
		s.dispatcher, err = dispatch.New(s.db.sender, keys, &dispatch.Config{
			Policy:       s.options.policy,
			Timeout:      s.options.timeout,
			DrainTimeout: s.options.timeout,
			Network:      network,
			Retention:    s.options.retention,
			UserAgent:    userAgent(),
			Hooks:        s.metrics.sender.Hooks(),
			Convert:      types.Convert,
			Logger:       s.log,
		})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// jobsDrain is how long jobs go on after a signal to end: a short one can end in that time. The others go on from their last step in the next process. A replay waits for most of
// its time, and would keep the program from its end for nothing.
const jobsDrain = time.Second

// assembleJobs has the completion of jobs told by the library's own events.
func (s *service) assembleJobs() error {
	callbacks, err := jobs.NewCallbacks(s.registry, s.publisher, &jobs.CallbacksConfig{Logger: s.log})
	if err != nil {
		return err
	}
	s.jobs, err = jobs.New[*sql.Tx](s.db.jobs, s.jobKinds(), &jobs.Config[*sql.Tx]{Announcer: callbacks, DrainTimeout: min(jobsDrain, s.options.timeout), MaxStateBytes: maxImportState, Logger: s.log, Hooks: jobs.Hooks{Finished: s.finished}})
	return err
}

// finished is called once the end of a job is committed.
func (s *service) finished(ctx context.Context, j jobs.Job) {
	s.metrics.finished(j)
	s.endReplayOf(ctx, j)
	s.dropExports(ctx, j)
}

func (s *service) close() { s.db.close() }

func userAgent() string { return "surehook/" + version() }

// newID makes an id of what is not stored.
func newID(prefix string) string { return prefix + strings.ToLower(rand.Text()) }

// newToken is a bearer token that nobody can guess.
func newToken() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b)
	return "tok_" + base64.RawURLEncoding.EncodeToString(b)
}
