// Package scenario tests both sides together, as a service and its consumers use them:
// a year of subscriptions in virtual time, catching up, challenges, and secrets that
// nothing may print. It has only tests. Processes are killed in internal/proof/kill.
package scenario
