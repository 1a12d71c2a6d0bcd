// Package producer is the sending service of docs/metrics.md.
package producer

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/surehook/surehook"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/senderotel"
	"github.com/surehook/surehook/sender/senderprom"
)

// Observed makes a Sender that Prometheus and OpenTelemetry observe.
func Observed[Tx any](store surehook.Store[Tx], key sender.SealingKey) (*surehook.Sender[Tx], error) {
	metrics, err := senderprom.New(nil)
	if err != nil {
		return nil, err
	}
	traces, err := senderotel.New(nil) // the global providers
	if err != nil {
		return nil, err
	}
	sys, err := surehook.NewSender(store, key, &surehook.SenderConfig{
		PublishHooks: sender.JoinPublishHooks(metrics.PublishHooks(), traces.PublishHooks()),
		Traceparent:  traces.PublishTraceparent,
		Dispatch: dispatch.Config{
			Hooks:       dispatch.JoinHooks(metrics.Hooks(), traces.Hooks()),
			Traceparent: traces.AttemptTraceparent, // only if receivers may learn of your traces
		},
	})
	if err != nil {
		return nil, err
	}
	totals, err := senderprom.NewTotals(sys.History, nil)
	if err != nil {
		return nil, err
	}
	return sys, errors.Join(prometheus.Register(metrics), prometheus.Register(totals))
}
