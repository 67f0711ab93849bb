package exec

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"strconv"
	"strings"
	"time"
)

// programs are the programs that the test binary can be, by the name under which it is started.
var programs = map[string]func(argument string){
	"relay":   relay,
	"answers": answers,
	"once":    once,
	"crashes": crashes,
	"prints":  prints,
	"partial": partial,
	"deaf":    deaf,
	"silent":  silent,
	"floods":  floods,
	"twice":   twice,
	"noisy":   noisy,
	"hold":    hold,
	"parent":  parent,
}

// eachQuestion calls f with the questions on standard input.
func eachQuestion(f func(Question)) {
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var question Question
		if err := json.Unmarshal(line, &question); err != nil {
			panic(err)
		}
		f(question)
	}
}

// printStatus answers with a status.
func printStatus(question Question, status any) {
	answer := map[string]any{"id": question.ID, "response": map[string]any{"status": status, "children": []any{}}}
	text, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", text)
}

// answers gives its process id and environment, and the version of the engine that it learned.
func answers(string) {
	eachQuestion(func(q Question) {
		printStatus(q, map[string]any{"pid": os.Getpid(), "env": len(os.Environ()), "engine": q.Engine})
	})
}

// once answers one question and ends.
func once(string) {
	eachQuestion(func(q Question) {
		printStatus(q, map[string]any{"pid": os.Getpid()})
		os.Exit(0)
	})
}

// crashes ends without an answer.
func crashes(string) {
	eachQuestion(func(Question) {
		fmt.Fprintln(os.Stderr, "Traceback (most recent call last):")
		fmt.Fprintln(os.Stderr, "KeyError: 'spec'")
		os.Exit(3)
	})
}

// prints writes a text that is no answer.
func prints(text string) {
	eachQuestion(func(Question) { fmt.Println(text) })
}

// partial ends in the middle of its answer.
func partial(string) {
	eachQuestion(func(q Question) {
		fmt.Printf(`{"id":%d,"response":{`, q.ID)
		os.Exit(0)
	})
}

// deaf never reads.
func deaf(string) { time.Sleep(time.Hour) }

// silent reads, and never answers.
func silent(string) {
	eachQuestion(func(Question) {})
}

// floods writes without an end, in lines of the given length; 0 is one line that does not end.
func floods(length string) {
	n, err := strconv.Atoi(length)
	if err != nil {
		panic(err)
	}
	text := strings.Repeat("x", max(n, 1<<10))
	if n > 0 {
		text += "\n"
	}
	for {
		if _, err := os.Stdout.WriteString(text); err != nil {
			return
		}
	}
}

// twice answers each question with two lines.
func twice(string) {
	eachQuestion(func(q Question) {
		printStatus(q, map[string]any{})
		printStatus(q, map[string]any{})
	})
}

// noisy writes many lines to standard error, a long one among them, before it answers.
func noisy(lines string) {
	n, err := strconv.Atoi(lines)
	if err != nil {
		panic(err)
	}
	eachQuestion(func(q Question) {
		fmt.Fprintln(os.Stderr, strings.Repeat("long ", 10_000))
		for i := range n {
			fmt.Fprintln(os.Stderr, "line", i)
		}
		printStatus(q, map[string]any{})
	})
}

// hold connects to an address and keeps the connection until the program is killed.
func hold(address string) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		panic(err)
	}
	_, _ = conn.Read(make([]byte, 1))
}

// parent starts a program of its own that holds a connection, and ignores the end of its standard
// input.
func parent(address string) {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	child := osexec.Command(self)
	child.Args = []string{"hold@" + address}
	if err := child.Start(); err != nil {
		panic(err)
	}
	eachQuestion(func(q Question) { printStatus(q, map[string]any{}) })
	time.Sleep(time.Hour)
}
