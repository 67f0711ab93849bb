# what is tested
