// Package child runs the processes of a measurement. Parent and child exchange lines of
// JSON over the child's standard input and output, so a child notices at once when its
// parent has gone.
package child
