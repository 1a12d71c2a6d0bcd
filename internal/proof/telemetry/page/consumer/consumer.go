// Package consumer is the receiving service of docs/metrics.md.
package consumer

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/surehook/surehook"
	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receiverotel"
	"github.com/surehook/surehook/receiver/receiverprom"
)

// Observed makes a Receiver that Prometheus and OpenTelemetry observe.
func Observed[Tx any](inTx receiver.InTx[Tx], store dedup.Store[Tx], secret string) (*receiver.Receiver[Tx], error) {
	metrics := receiverprom.New()
	if err := prometheus.Register(metrics); err != nil {
		return nil, err
	}
	traces, err := receiverotel.New(nil) // the global providers
	if err != nil {
		return nil, err
	}
	return surehook.NewReceiver(inTx, store, "billing", secret, &surehook.ReceiverConfig{
		Receive: receiver.Config{Hooks: receiver.JoinHooks(metrics.Hooks(), traces.Hooks())},
	})
}
