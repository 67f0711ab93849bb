module example.com/extra

go 1.26
