// Package senderprom shows to Prometheus what the sending side does: publishes, expansion,
// attempts by class and lane, the times to the first attempt and to success, the
// dispatcher's time in the database, outages, and leases taken over. It also shows the
// backlog, the oldest due delivery and other totals of the database.
//
//	metrics, err := senderprom.New(nil)
//	prometheus.MustRegister(metrics)
//	sys, err := surehook.NewSender(store, key, &surehook.SenderConfig{
//		PublishHooks: metrics.PublishHooks(),
//		Dispatch:     dispatch.Config{Hooks: metrics.Hooks()},
//	})
//	totals, err := senderprom.NewTotals(sys.History, nil)
//	prometheus.MustRegister(totals)
//
// It is a module of its own, so that nobody's version of the Prometheus client is raised
// for the library's sake. No label grows with subscriptions, URLs or events, and none holds
// anything that a customer chose: types of events are told apart only if they are listed in
// Config.EventTypes.
//
// dashboard.json is a dashboard for Grafana, and alerts.yml has rules for Prometheus. The
// page docs/alerts.md says what to do at each alert.
package senderprom
