package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// example builds one of the example programs.
func example(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if out, err := exec.Command("go", "build", "-o", path, "../../examples/"+name).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// drive runs a driver, kills an engine and starts another one at every so many
// results, and returns what the driver printed.
func drive(t *testing.T, every int, engine func() *exec.Cmd, driver *exec.Cmd) string {
	t.Helper()
	var engines []*exec.Cmd
	launch := func() {
		cmd := engine()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		engines = append(engines, cmd)
	}
	t.Cleanup(func() {
		for _, cmd := range engines {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	launch()
	launch()
	var out bytes.Buffer
	driver.Stdout = &out
	progress, err := driver.StderrPipe()
	if err == nil {
		err = driver.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = driver.Process.Kill() })
	var said []byte
	killed := 0
	for r, results := bufio.NewReader(progress), 0; ; {
		piece, err := r.ReadBytes('\r')
		said = append(said, piece...)
		if err != nil {
			break
		}
		if results++; results%every == 0 {
			_ = engines[0].Process.Kill()
			_ = engines[0].Wait()
			engines = engines[1:]
			killed++
			launch()
		}
	}
	if err := driver.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if killed < 2 {
		t.Errorf("only %d engines were killed", killed)
	}
	return out.String()
}

// The estimate is what the darts say, whatever happened to the engines.
func TestTheExampleOfPiIsExactWhateverDies(t *testing.T) {
	t.Parallel()
	const tasks, darts = 40, 50_000
	dir := t.TempDir()
	s := start(t, filepath.Join(dir, "root"), "-c", write(t, filepath.Join(dir, "grid.yaml"), gridConfig))
	program := example(t, "pi")
	got := drive(t, 8,
		func() *exec.Cmd { return exec.Command(program, "engine", "-url", s.url, "-slots", "2") },
		exec.Command(program, "-url", s.url, "-tasks", fmt.Sprint(tasks), "-darts", fmt.Sprint(darts)))
	inside := 0
	for seed := range uint64(tasks) {
		throw := rand.New(rand.NewPCG(seed+1, 1))
		for range darts {
			if x, y := throw.Float64(), throw.Float64(); x*x+y*y <= 1 {
				inside++
			}
		}
	}
	want := fmt.Sprintf("tasks %d, darts %d, pi is about %.6f\n", tasks, tasks*darts, 4*float64(inside)/(tasks*darts))
	if got != want {
		t.Errorf("got %q, not %q", got, want)
	}
}

// A sweep over a real command, awk, has a row for every combination.
func TestTheExampleOfASweepHasEveryRowWhateverDies(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("awk"); err != nil {
		t.Skip("there is no awk")
	}
	dir := t.TempDir()
	s := start(t, filepath.Join(dir, "root"), "-c", write(t, filepath.Join(dir, "grid.yaml"), gridConfig))
	program := example(t, "sweep")
	command, err := exec.Command(program, "-command").Output()
	if err != nil {
		t.Fatal(err)
	}
	got := drive(t, 4, func() *exec.Cmd {
		cmd := exec.Command(binary, "engine", "--slots", "2", "--quiet", "--exec", string(command), "--url", s.url)
		cmd.Stderr = os.Stderr
		return cmd
	}, exec.Command(program, "-url", s.url, "-v0", "20:30:5", "-angle", "30:50:5"))
	type row struct{ v0, angle, distance float64 }
	var rows []row
	for v0 := 20.0; v0 <= 30; v0 += 5 {
		for angle := 30.0; angle <= 50; angle += 5 {
			rows = append(rows, row{v0, angle, flies(v0, angle)})
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return -cmp.Compare(a.distance, b.distance) })
	lines := strings.Split(strings.TrimSpace(got), "\n")[1:]
	if len(lines) != len(rows) {
		t.Fatalf("%d rows, not %d:\n%s", len(lines), len(rows), got)
	}
	for i, line := range lines {
		var r row
		if _, err := fmt.Sscan(line, &r.v0, &r.angle, &r.distance); err != nil {
			t.Fatal(line, err)
		}
		if want := rows[i]; r.v0 != want.v0 || r.angle != want.angle || math.Abs(r.distance-want.distance) > 0.02 {
			t.Errorf("row %d is %v, not %v", i, r, want)
		}
	}
}

// flies is what the command computes.
func flies(v0, angle float64) float64 {
	a, x, y, dt := angle*math.Pi/180, 0.0, 0.0, 0.001
	vx, vy := v0*math.Cos(a), v0*math.Sin(a)
	for y >= 0 {
		s := math.Hypot(vx, vy)
		vx -= 0.005 * s * vx * dt
		vy -= (9.81 + 0.005*s*vy) * dt
		x, y = x+vx*dt, y+vy*dt
	}
	return x
}
