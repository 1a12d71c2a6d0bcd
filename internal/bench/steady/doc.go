// Package steady has a process commit events at a steady rate, while its parent
// measures what that costs. The times are the same in each run.
package steady
