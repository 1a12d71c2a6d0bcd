// Package linearizable has only tests. Several processes work on one database and record
// their calls, with times and results. One process that made all these calls in some
// order must have been able to get the same results. Porcupine looks for that order.
package linearizable
