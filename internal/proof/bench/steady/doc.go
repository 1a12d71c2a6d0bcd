// Package steady makes a process commit events at a steady rate, while its parent
// measures the cost. The times are the same in each run.
package steady
