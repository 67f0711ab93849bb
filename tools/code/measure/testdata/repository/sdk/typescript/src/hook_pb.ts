// what is generated
