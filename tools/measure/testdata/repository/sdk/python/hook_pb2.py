# what is generated
